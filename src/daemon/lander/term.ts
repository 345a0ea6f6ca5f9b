import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { planted } from '../../core/planted.ts'
import { shortLine } from '../../core/quote.ts'
import { Refusal } from '../../core/refusal.ts'
import { isInside } from '../../machine/checkout.ts'
import { sha256 } from '../../machine/digest.ts'
import {
  commitOf,
  EMPTY_TREE,
  FILES_MS,
  git,
  gitList,
  gitRefused,
  gitSays,
  type GitOptions,
  type GitSaid,
  landedRef,
  nulEnded,
  REMOTE_MS,
  type Repository,
  tryGit,
} from '../../machine/git.ts'
import { STATE_NAME } from '../../machine/place.ts'
import { BranchMove, type Obstacle } from './branch_move.ts'

const NONE = '0'.repeat(40)

/** A remote has its own patience. */
export const FAR = { timeout_ms: REMOTE_MS }

/** A branch of a remote as a ref of ours: no ref of the person's changes, of remotes or tags. */
export async function fetchBranch(cwd: string, remote: string, branch: string, to: string) {
  const ours = ['--quiet', '--no-tags', '--no-write-fetch-head', '--refmap=']
  await git(cwd, ['fetch', ...ours, remote, `+refs/heads/${branch}:${to}`], FAR)
}

/** As one part of a ref: git has no `release` beside `release/1.0`. */
export const flat = (name: string) => encodeURIComponent(name)

/** Where the present state of a target stands: here, or as it was last fetched. */
const nameOf = (target: string, remote: string | null) =>
  remote === null ? `refs/heads/${target}` : `refs/leasehold/target/${flat(remote)}/${flat(target)}`

/** What is about to become of a target: `landed` are the commits that go into it. */
interface Move {
  target: string
  old: string
  now: string
  landed: string[]
}

/** What became of a move: `changed`, when somebody else has moved the target. */
export type Moved = 'moved' | 'changed' | Obstacle

export type Stacked =
  | { top: string }
  | { conflict: string[] }
  | { nothing: true }
  | { broken: string; paths: string[] }

/**
 * One lander's time in a repository. Git itself knows the fence of the term: each target has a
 * ref that names it, and is moved in the same transaction that looks at this ref. A lander that was
 * paused or killed moves nothing once its successor has begun, whatever it was about to do.
 */
export class Term {
  private readonly terms = new Map<string, string>()
  private readonly tree: string
  private hasTree = false
  /** Of what fills its tree: nobody waits longer for what git cannot do than for a check. */
  patience_ms = FILES_MS

  readonly top: string
  readonly common: string

  constructor(
    { top, common }: Repository,
    /** Where the trees of landers are. */
    private readonly folder: string,
    private readonly role: string,
    readonly fence: number,
  ) {
    this.top = top
    this.common = common
    // A tree of its own: one of a lander that was paused may still change under it.
    this.tree = join(folder, `lander-${fence}`)
  }

  private refOf(target: string): string {
    return `${LANDERS}/${sha256(this.role).slice(0, 12)}/${flat(target)}`
  }

  /**
   * From here on no lander before this one can move `target`. One that was succeeded meanwhile may
   * still come here: the store refuses it then before it moves anything, and its successor, which
   * finds the ref changed, begins again. So the fence is not compared: in a repository that another
   * store was used with before, the ref has a number that says nothing here.
   */
  async begin(target: string, remote: string | null): Promise<void> {
    if (this.terms.has(target)) return
    // First: a ref for a name that is no branch could keep one for another from being made.
    await this.tip(target, remote)
    const ref = this.refOf(target)
    const told = await git(this.top, ['hash-object', '-w', '--stdin'], { input: this.words() })
    const { out } = await tryGit(this.top, ['rev-parse', '--verify', '--quiet', ref])
    await git(this.top, ['update-ref', ref, told, out.trim() || NONE])
    this.terms.set(target, told)
    if (remote !== null) await this.beginAt(target, remote)
  }

  /** Begins again for this target when it is next asked to. */
  forget(target: string | null): void {
    if (target !== null) this.terms.delete(target)
  }

  private words(more = ''): string {
    return `${this.fence}${more}\n`
  }

  /** The same at a remote. There each push names another object: what is the same is not sent. */
  private async beginAt(target: string, remote: string): Promise<void> {
    const ref = this.refOf(target)
    const [line = ''] = await gitList(this.top, ['ls-remote', remote, ref], FAR)
    const old = line.split('\t')[0] ?? ''
    const lease = `--force-with-lease=${ref}:${old}`
    const named = `${this.terms.get(target)}:${ref}`
    await git(this.top, ['push', '--quiet', lease, remote, named], FAR)
  }

  /**
   * Nobody who began before this can move `target` at its remote any more, on other hosts either: a
   * push whose lander is dead may be under way still. Who lives begins again.
   */
  async endOthers(target: string, remote: string): Promise<void> {
    const own = this.refOf(target)
    const args = ['ls-remote', remote, `${LANDERS}/*/${flat(target)}`]
    for (const line of await gitList(this.top, args, FAR)) {
      const [old = '', ref = ''] = line.split('\t')
      if (ref === own || old === this.terms.get(target)) continue
      const lease = `--force-with-lease=${ref}:${old}`
      await git(
        this.top,
        ['push', '--quiet', lease, remote, `${this.terms.get(target)}:${ref}`],
        FAR,
      )
    }
  }

  /** What the target is now. */
  async tip(target: string, remote: string | null): Promise<string> {
    if (remote !== null) {
      await fetchBranch(this.top, remote, target, nameOf(target, remote))
    }
    const found = await commitOf(this.top, nameOf(target, remote))
    if (found) return found
    throw new Refusal('not_found', `There is no branch ${target} to land onto`)
  }

  /** A commit that is not here, though all of the target is, is not in it: another host made it. */
  async contains(target: string, remote: string | null, commit: string): Promise<boolean> {
    const tip = await this.tip(target, remote)
    if ((await commitOf(this.top, commit)) === undefined) return false
    return gitSays(this.top, ['merge-base', '--is-ancestor', commit, tip])
  }

  /** Files as `commit` has them, and no others that git knows of; what is ignored stays. */
  async at(commit: string): Promise<string> {
    // A check may have removed what makes it a tree of ours, or left it locked.
    if (!this.hasTree || !(await this.isAt(commit))) await this.makeTree(commit)
    return this.tree
  }

  private async isAt(commit: string): Promise<boolean> {
    if (!existsSync(join(this.tree, '.git'))) return false
    for (const kind of ['rebase', 'merge']) await this.inTree([kind, '--abort'])
    await this.lookAtAll()
    const { code } = await this.inTree(['checkout', '--quiet', '--detach', '--force', commit])
    return code === 0 && (await this.inTree(['clean', '--quiet', '-ffd'])).code === 0
  }

  /** A check may have told git to look away from files that it changed: see git update-index. */
  private async lookAtAll(): Promise<void> {
    const encoding = 'latin1'
    const { out } = await this.inTree(['ls-files', '-v', '-z'], { encoding })
    const flagged = out.split('\0').filter((each) => /^[a-zS] /.test(each))
    const input = nulEnded(flagged.map((each) => each.slice(2)))
    for (const flag of input === '' ? [] : ['--no-skip-worktree', '--no-assume-unchanged']) {
      await this.inTree(['update-index', flag, '-z', '--stdin'], { input, encoding })
    }
  }

  /**
   * Git in this tree and nowhere else: around it is somebody's checkout, with work of theirs. A
   * commit is read as it is: nobody's replacement of it, and all of its files.
   */
  private inTree(args: string[], options?: GitOptions): Promise<GitSaid> {
    const within = { GIT_CEILING_DIRECTORIES: this.folder, GIT_NO_REPLACE_OBJECTS: '1' }
    const env = { ...within, GIT_EDITOR: 'true' }
    const whole = ['-c', 'core.sparseCheckout=false', ...args]
    return tryGit(this.tree, whole, { timeout_ms: this.patience_ms, ...options, env })
  }

  /** Trees of landers hold nobody's work: those of former terms go. */
  private async makeTree(commit: string): Promise<void> {
    await this.removeTrees((fence) => fence <= this.fence)
    const forced = ['--force', '--force']
    const args = ['worktree', 'add', '--quiet', '--detach', ...forced, this.tree, commit]
    await git(this.top, args, { timeout_ms: this.patience_ms })
    this.hasTree = true
  }

  private async removeTrees(goes: (fence: number) => boolean): Promise<void> {
    const listed = await gitList(this.top, ['worktree', 'list', '--porcelain', '-z'])
    const known = listed.flatMap((line) => /^worktree (.+)$/s.exec(line)?.[1] ?? [])
    const found = readdirSync(this.folder).map((name) => join(this.folder, name))
    for (const path of new Set([...known, ...found])) {
      const fence = path.startsWith(`${this.folder}/`) && /\/lander-(\d+)$/.exec(path)?.[1]
      if (!fence || !goes(Number(fence))) continue
      // Not `prune`: that would forget trees of others whose disk is away just now.
      await tryGit(this.top, ['worktree', 'remove', '--force', '--force', path], SLOW)
      rmSync(path, { recursive: true, force: true })
    }
  }

  end(): Promise<void> {
    return this.removeTrees((fence) => fence === this.fence)
  }

  /** Its conflicts may be settled by a merge of its own: a rebase would meet all of them again. */
  private async hasMerges(base: string, commit: string): Promise<boolean> {
    const found = ['rev-list', '--merges', '--max-count=1', `${base}..${commit}`]
    return (await git(this.top, found)) !== ''
  }

  /**
   * Puts `commit` on top of `base`; by a merge where it has merges of its own. What git cannot do
   * with it, while it can do the same with `base`, is `broken`: it says nothing about any other.
   */
  async stack(base: string, commit: string, method: string, message: string): Promise<Stacked> {
    try {
      const hidden = await this.statePaths(base, commit)
      if (hidden.length > 0) return { broken: 'it changes a state folder of ours', paths: hidden }
      return await this.put(base, commit, method, message)
    } catch (error) {
      const broken = (error as Error).message
      if (!(error instanceof Refusal) || ENVIRONMENT.test(broken)) throw error
      await this.at(base)
      return { broken, paths: [] }
    }
  }

  /** Paths with which `commit` would write to a state folder, in whatever checkout: see R50. */
  private async statePaths(base: string, commit: string): Promise<string[]> {
    const { top, common, state } = this
    const { out } = await tryGit(top, ['merge-base', base, commit])
    const from = out.trim().split('\n')[0] || EMPTY_TREE
    const asked = ['diff-tree', '-r', '-z', '--no-renames', '--name-only', from, commit]
    return (await gitList(top, asked)).filter((path) => {
      if (path.toLowerCase().split('/').includes(STATE_NAME)) return true
      const places = [top, dirname(common)].map((each) => resolve(each, path))
      return places.some((at) => isInside(state, at) || isInside(at, state))
    })
  }

  private async put(
    base: string,
    commit: string,
    method: string,
    message: string,
  ): Promise<Stacked> {
    const merges = method === 'merge' || (await this.hasMerges(base, commit))
    await this.at(merges ? base : commit)
    const args = merges
      ? ['merge', '--quiet', '--no-ff', '--no-autostash', '--message', message, commit]
      : ['rebase', '--quiet', '--no-autostash', '--no-autosquash', base]
    const { code, out, err } = await this.inTree([...NO_SURPRISE, ...args])
    if (code === 0) {
      const top = (await this.inTree(['rev-parse', 'HEAD'])).out.trim()
      // A commit that changes no file is nothing to land either.
      const isSame = await gitSays(this.top, ['diff', '--quiet', base, top, '--'])
      return isSame ? { nothing: true } : { top }
    }
    const unmerged = await this.inTree(['diff', '--name-only', '-z', '--diff-filter=U'])
    const paths = unmerged.out.split('\0').filter((each) => each !== '')
    if (paths.length > 0) return { conflict: paths }
    throw new Refusal('illegal_move', `git ${method}: ${shortLine(err.trim() || out.trim(), 300)}`)
  }

  /**
   * Moves the target from `old` to `now`, if it is `old` still and this term is the last one that
   * began; one transaction of git. Answers what is in the way in a checkout, or that the target has
   * moved; refuses where git will not.
   */
  async move({ landed, ...ask }: Move & { why: string }): Promise<Moved> {
    const { target, old, now } = ask
    const own = planted('R55') ? [] : [`verify ${this.refOf(target)} ${this.terms.get(target)}`]
    const beside = [...own, ...(await this.replaced(landed, now))]
    const moved = await new BranchMove(this, { ...ask, beside }).make()
    return typeof moved === 'object' && 'err' in moved ? this.notMoved(moved, target, old) : moved
  }

  get state(): string {
    return resolve(this.folder, '../..')
  }

  private async notMoved({ err }: { err: string }, target: string, old: string): Promise<Moved> {
    const { out } = await tryGit(this.top, ['rev-parse', '--verify', '--quiet', this.refOf(target)])
    if (out.trim() !== this.terms.get(target)) throw stale(target)
    if ((await this.tip(target, null)) === old) throw gitRefused(['update-ref'], failed(err))
    return 'changed'
  }

  /** Commits of which the target gets others in their place: a ref keeps what was there before. */
  private async replaced(landed: string[], now: string): Promise<string[]> {
    const kept: string[] = []
    for (const commit of landed) {
      const isIn = await gitSays(this.top, ['merge-base', '--is-ancestor', commit, now])
      if (!isIn) kept.push(`update ${landedRef(commit)} ${commit}`)
    }
    return kept
  }

  /** The same at a remote: both refs or neither, each only if it is as we know it. */
  async push({ target, old, now, landed, remote }: Move & { remote: string }): Promise<boolean> {
    const ref = this.refOf(target)
    const input = this.words(` ${now}`)
    const told = await git(this.top, ['hash-object', '-w', '--stdin'], { input })
    const leases = [`refs/heads/${target}:${old}`, `${ref}:${this.terms.get(target)}`]
    const args = [
      ...['push', '--quiet', '--atomic', '--no-verify'],
      ...leases.map((lease) => `--force-with-lease=${lease}`),
      ...[remote, `${now}:refs/heads/${target}`, `${told}:${ref}`],
    ]
    const said = await tryGit(this.top, args, FAR)
    if (said.code === 0) {
      const kept = [`update ${ref} ${told}`, ...(await this.replaced(landed, now))]
      await git(this.top, ['update-ref', '--stdin'], { input: `${kept.join('\n')}\n` })
      this.terms.set(target, told)
      return true
    }
    const [line = ''] = await gitList(this.top, ['ls-remote', remote, ref], FAR)
    if (line.split('\t')[0] !== this.terms.get(target)) throw stale(target)
    if ((await this.tip(target, remote)) === old) throw gitRefused(args, said)
    return false
  }
}

/** Settings of the repository that would make a rebase do more than it is asked to. */
const NO_SURPRISE = [
  ...['-c', 'rebase.updateRefs=false', '-c', 'rebase.missingCommitsCheck=ignore'],
  ...['-c', 'rebase.rebaseMerges=false', '-c', 'rebase.forkPoint=false', '-c', 'merge.log=false'],
]

/** What removes many files has its own patience. */
const SLOW = { timeout_ms: FILES_MS }
/** What git says when the machine, and not what it is asked to do, is the trouble. */
const ENVIRONMENT = /No space left|Read-only file|Input\/output error|quota|Too many open|allocate/

const LANDERS = 'refs/leasehold/lander'

const failed = (err: string): GitSaid => ({ code: 128, out: '', err })

/** Thrown when another lander has begun: what this one knows is of another time. */
const stale = (target: string) =>
  new Refusal('fence_stale', `Another lander has begun its term for ${target}`)
