import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { planted } from '../../core/planted.ts'
import { shortLine } from '../../core/one_line.ts'
import { Refusal } from '../../core/refusal.ts'
import { sha256 } from '../../machine/digest.ts'
import { commitOf, git, gitList, tryGit } from '../../machine/git.ts'

const NONE = '0'.repeat(40)

export type Stacked = { top: string } | { conflict: string[] } | { nothing: true }

/**
 * One lander's time in a repository. Git itself knows the fence of the term: each target has a
 * ref that names it, and is moved in the same transaction that looks at this ref. A lander that was
 * paused or killed moves nothing once its successor has begun, whatever it was about to do.
 */
export class Term {
  private readonly terms = new Map<string, string>()
  private readonly tree: string
  private hasTree = false

  constructor(
    /** A checkout of the repository. */
    private readonly top: string,
    /** Where the trees of landers are. */
    private readonly folder: string,
    private readonly role: string,
    readonly fence: number,
  ) {
    // A tree of its own: one of a lander that was paused may still change under it.
    this.tree = join(folder, `lander-${fence}`)
  }

  private refOf(target: string): string {
    return `refs/leasehold/lander/${sha256(this.role).slice(0, 12)}/${target}`
  }

  /** From here on no lander before this one can move `target`. Refuses if a later one has begun. */
  async begin(target: string, remote: string | null): Promise<void> {
    if (this.terms.has(target)) return
    const ref = this.refOf(target)
    const told = await git(this.top, ['hash-object', '-w', '--stdin'], { input: this.words() })
    for (;;) {
      const old = (await tryGit(this.top, ['rev-parse', '--verify', '--quiet', ref])).out.trim()
      if (
        old !== '' &&
        Number.parseInt(await git(this.top, ['cat-file', 'blob', old]), 10) > this.fence
      ) {
        throw stale(target)
      }
      const args = ['update-ref', ref, told, old || NONE]
      const { code } = await tryGit(this.top, args)
      if (code === 0) break
    }
    this.terms.set(target, told)
    if (remote !== null) await this.beginAt(target, remote)
  }

  private words(more = ''): string {
    return `${this.fence}${more}\n`
  }

  /** The same at a remote. There each push names another object: what is the same is not sent. */
  private async beginAt(target: string, remote: string): Promise<void> {
    const ref = this.refOf(target)
    const [line = ''] = await gitList(this.top, ['ls-remote', remote, ref])
    const old = line.split('\t')[0] ?? ''
    const lease = `--force-with-lease=${ref}:${old}`
    await git(this.top, ['push', '--quiet', lease, remote, `${this.terms.get(target)}:${ref}`])
  }

  /** What the target is now. */
  async tip(target: string, remote: string | null): Promise<string> {
    if (remote !== null) {
      const to = `refs/leasehold/target/${remote}/${target}`
      await git(this.top, ['fetch', '--quiet', remote, `+refs/heads/${target}:${to}`])
    }
    const found = await commitOf(this.top, nameOf(target, remote))
    if (found) return found
    throw new Refusal('not_found', `There is no branch ${target} to land onto`)
  }

  async contains(target: string, remote: string | null, commit: string): Promise<boolean> {
    const args = ['merge-base', '--is-ancestor', commit, await this.tip(target, remote)]
    return (await tryGit(this.top, args)).code === 0
  }

  /** Files as `commit` has them, and no others that git knows of; what is ignored stays. */
  async at(commit: string): Promise<string> {
    if (!this.hasTree) await this.makeTree(commit)
    for (const kind of ['rebase', 'merge']) await tryGit(this.tree, [kind, '--abort'])
    await git(this.tree, ['checkout', '--quiet', '--detach', '--force', commit])
    await git(this.tree, ['clean', '--quiet', '-ffd'])
    return this.tree
  }

  /** Trees of landers hold nobody's work: those of former terms go. */
  private async makeTree(commit: string): Promise<void> {
    await this.removeTrees((fence) => fence <= this.fence)
    await git(this.top, ['worktree', 'add', '--quiet', '--detach', '--force', this.tree, commit])
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
      await tryGit(this.top, ['worktree', 'remove', '--force', '--force', path])
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

  /** Puts `commit` on top of `base`; by a merge where it has merges of its own. */
  async stack(base: string, commit: string, method: string, message: string): Promise<Stacked> {
    const merges = method === 'merge' || (await this.hasMerges(base, commit))
    const tree = await this.at(merges ? base : commit)
    const args = merges
      ? ['merge', '--quiet', '--no-ff', '--message', message, commit]
      : [...NO_SURPRISE, 'rebase', '--quiet', '--no-autostash', '--no-autosquash', base]
    const { code, out, err } = await tryGit(tree, args)
    const top = await git(tree, ['rev-parse', 'HEAD'])
    if (code === 0) {
      // A commit that changes no file is nothing to land either.
      const same = await tryGit(tree, ['diff', '--quiet', base, top, '--'])
      return same.code === 0 ? { nothing: true } : { top }
    }
    const paths = await gitList(tree, ['diff', '--name-only', '-z', '--diff-filter=U'])
    if (paths.length > 0) return { conflict: paths }
    throw new Refusal('illegal_move', `git ${method}: ${shortLine(err.trim() || out.trim(), 300)}`)
  }

  /**
   * Moves the target from `old` to `now`, if it is `old` still and this term is the last one that
   * began; one transaction of git. False when the target has moved.
   */
  async move(target: string, old: string, now: string, why: string): Promise<boolean> {
    const asked = [
      ...(planted('R55') ? [] : [`verify ${this.refOf(target)} ${this.terms.get(target)}`]),
      `update refs/heads/${target} ${now} ${old}`,
    ]
    const input = `start\n${asked.join('\n')}\nprepare\ncommit\n`
    const args = ['update-ref', '-m', `leasehold: ${why}`, '--stdin']
    if ((await tryGit(this.top, args, { input })).code === 0) return true
    await this.checkLast(target)
    return false
  }

  /** Refuses when a later term has begun. */
  private async checkLast(target: string): Promise<void> {
    const { out } = await tryGit(this.top, ['rev-parse', '--verify', '--quiet', this.refOf(target)])
    if (out.trim() !== this.terms.get(target)) throw stale(target)
  }

  /** The same at a remote: both refs or neither, each only if it is as we know it. */
  async push(target: string, remote: string, old: string, now: string): Promise<boolean> {
    const ref = this.refOf(target)
    const input = this.words(` ${now}`)
    const told = await git(this.top, ['hash-object', '-w', '--stdin'], { input })
    const leases = [`refs/heads/${target}:${old}`, `${ref}:${this.terms.get(target)}`]
    const { code } = await tryGit(this.top, [
      ...['push', '--quiet', '--atomic', '--no-verify'],
      ...leases.map((lease) => `--force-with-lease=${lease}`),
      ...[remote, `${now}:refs/heads/${target}`, `${told}:${ref}`],
    ])
    if (code === 0) {
      await tryGit(this.top, ['update-ref', ref, told, this.terms.get(target)!])
      this.terms.set(target, told)
      return true
    }
    const [line = ''] = await gitList(this.top, ['ls-remote', remote, ref])
    if (line.split('\t')[0] !== this.terms.get(target)) throw stale(target)
    return false
  }

  /**
   * Why the checkout that has `target` cannot follow it to `now`; null when it can, or none has it.
   */
  async obstacle(target: string, old: string, now: string): Promise<string | null> {
    const place = await this.checkoutOf(target)
    if (place === undefined) return null
    await tryGit(place, ['update-index', '-q', '--refresh'])
    const { code, err } = await tryGit(place, ['read-tree', '-n', '-m', '-u', old, now])
    if (code === 0) return null
    return `${place}, which has ${target} checked out, has changes in its way: ${err.trim()}`
  }

  /** The files of the checkout that has `target` follow it from `old`, if they are still there. */
  async follow(target: string, old: string): Promise<void> {
    const place = await this.checkoutOf(target)
    if (place === undefined) return
    const isThere = await tryGit(place, ['diff-index', '--cached', '--quiet', old, '--'])
    if (isThere.code !== 0) return
    await tryGit(place, ['update-index', '-q', '--refresh'])
    await git(place, ['read-tree', '-m', '-u', old, `refs/heads/${target}`])
  }

  private async checkoutOf(target: string): Promise<string | undefined> {
    const lines = await gitList(this.top, ['worktree', 'list', '--porcelain', '-z'])
    const at = lines.indexOf(`branch refs/heads/${target}`)
    const named = lines.slice(0, at).findLast((line) => line.startsWith('worktree '))
    return at === -1 ? undefined : named?.slice('worktree '.length)
  }
}

/** Settings of the repository that would make a rebase do more than it is asked to. */
const NO_SURPRISE = ['-c', 'rebase.updateRefs=false', '-c', 'rebase.missingCommitsCheck=ignore']

const nameOf = (target: string, remote: string | null) =>
  remote === null ? `refs/heads/${target}` : `refs/leasehold/target/${remote}/${target}`

/** Thrown when another lander has begun: what this one knows is of another time. */
const stale = (target: string) =>
  new Refusal('fence_stale', `Another lander has begun its term for ${target}`)
