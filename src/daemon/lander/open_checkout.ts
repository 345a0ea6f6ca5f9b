import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import { shortLine } from '../../core/quote.ts'
import {
  fileNamed,
  FILES_MS,
  git,
  gitList,
  type GitOptions,
  gitSays,
  nameAsText,
  nulEnded,
  type Repository,
  tryGit,
} from '../../machine/git.ts'
import { IndexCopy } from '../../machine/git_save.ts'

/** What git notes in a checkout of what a person has begun there and not ended. */
const UNDERWAY = {
  MERGE_HEAD: 'a merge',
  CHERRY_PICK_HEAD: 'a cherry-pick',
  REVERT_HEAD: 'a revert',
  'rebase-merge': 'a rebase',
  'rebase-apply': 'a rebase',
}

/** One path in which two commits differ. */
interface Change {
  was: string
  now: string
  path: string
  isGone: boolean
}

const PATHS_MAX = 5
/** A command that somebody waits for. */
const BUSY_MS = 60_000

/**
 * A checkout in which somebody works. What is done here is first done to a copy of its index, so
 * that all of it can be refused before anything has changed.
 */
export class OpenCheckout {
  private readonly index: IndexCopy
  private readonly at: GitOptions

  private constructor(
    readonly path: string,
    /** Where git keeps what is of this checkout alone. */
    readonly folder: string,
    /** What it has checked out; null for no branch. */
    readonly branch: string | null,
  ) {
    this.index = new IndexCopy(folder)
    // By name: around a checkout whose `.git` was removed there may be another one.
    const env = { ...this.env, GIT_INDEX_FILE: this.index.path }
    this.at = { encoding: 'latin1', timeout_ms: FILES_MS, env }
  }

  /** All of a repository whose files are there, or may come back. */
  static async all({ common, top }: Omit<Repository, 'inside'>): Promise<OpenCheckout[]> {
    const known = new Map(
      namesIn(join(common, 'worktrees')).map((name) => {
        const folder = join(common, 'worktrees', name)
        return [dirname(textOf(join(folder, 'gitdir')).trim()), folder]
      }),
    )
    const said = await git(common, ['worktree', 'list', '--porcelain', '-z'])
    return said.split('\0\0').flatMap((entry, i) => {
      const of = (word: string) => entry.match(new RegExp(`(?:^|\\0)${word} ?([^\\0]*)`))?.[1]
      const listed = of('worktree')
      // Git guesses where the first one is: wrongly, where its git folder is somewhere else.
      const main = () => [listed!, top].find((each) => leadsTo(each, common)) ?? ''
      const path = listed !== undefined && i === 0 ? main() : listed
      if (path === undefined || of('bare') !== undefined || of('prunable') !== undefined) return []
      const folder = i === 0 ? common : known.get(path)
      const branch = of('branch')?.replace(/^refs\/heads\//, '') ?? null
      return folder === undefined ? [] : [new OpenCheckout(path, folder, branch)]
    })
  }

  get env(): Record<string, string> {
    return { GIT_DIR: this.folder, GIT_WORK_TREE: this.path }
  }

  /** Whether git may be at work there: a lock that is older was left by one that was killed. */
  get mayBeBusy(): boolean {
    const stat = statSync(this.lock, { throwIfNoEntry: false })
    return existsSync(this.path) && (!stat || Date.now() - stat.mtimeMs < BUSY_MS)
  }

  get lock(): string {
    return join(this.folder, 'index.lock')
  }

  /** The branch that it will be on when a rebase that is under way has ended. */
  get rebased(): string | undefined {
    const names = ['rebase-merge', 'rebase-apply'].map((each) => join(each, 'head-name'))
    const said = names.map((name) => textOf(join(this.folder, name)).trim()).find(Boolean)
    return said?.replace(/^refs\/heads\//, '')
  }

  async has(target: string): Promise<boolean> {
    const { out } = await tryGit(this.folder, ['symbolic-ref', '--quiet', 'HEAD'], this.at)
    return out.trim() === `refs/heads/${target}`
  }

  /**
   * Why its files cannot go from those of `old` to those of `now`; null when they can. Then a copy
   * of the index is ready for it. `isLocked`: its index is, for us.
   */
  async obstacle(old: string, now: string, isLocked = false): Promise<string | null> {
    const why = await this.why(old, now, isLocked)
    if (why !== null || !isLocked) this.close()
    return why && `${this.path}, which has ${this.branch} checked out, cannot follow it: ${why}`
  }

  private async why(old: string, now: string, isLocked: boolean): Promise<string | null> {
    if (!existsSync(this.path)) return 'its files are not there'
    const begun = Object.entries(UNDERWAY).find(([name]) => existsSync(join(this.folder, name)))
    if (begun) return `${begun[1]} is under way there`
    if (!isLocked && existsSync(this.lock)) return `git is at work there (${this.lock})`
    if (!this.index.take()) return 'it has no index'
    await tryGit(this.path, ['update-index', '-q', '--refresh'], this.at)
    const isNow = await gitSays(
      this.path,
      ['diff-index', '--cached', '--quiet', now, '--'],
      this.at,
    )
    const asked = ['diff-index', '--cached', '-z', '--name-only', old, '--']
    const staged = isNow ? [] : await gitList(this.path, asked, this.at)
    if (staged.length > 0) return `changes are staged there: ${some(staged)}`
    const changes = await this.changes(old, now)
    if ((await this.refused(old, now, changes)) === null) return null
    const other = await this.settle(changes)
    return (await this.refused(old, now, changes)) && `in its way there: ${some(other)}`
  }

  private async changes(old: string, now: string): Promise<Change[]> {
    const asked = ['diff-tree', '-r', '-z', '--no-renames', '--no-abbrev', old, now]
    const said = await gitList(this.path, asked, this.at)
    return said.flatMap((entry, i) => {
      const found = /^:(\d+) (\d+) (\w+) (\w+) (\w)$/.exec(entry)
      if (!found) return []
      const [, was_mode, mode, was, is, status] = found
      const path = said[i + 1]!
      return [{ was: `${was_mode} ${was}`, now: `${mode} ${is}`, path, isGone: status === 'D' }]
    })
  }

  /** Git's own look, and one for what git overwrites without a word because it is ignored. */
  private async refused(old: string, now: string, changes: Change[]): Promise<string | null> {
    const args = ['read-tree', '-n', '-m', '-u', old, now]
    const { code, err } = await tryGit(this.path, args, this.at)
    if (code !== 0) return shortLine(err, 300)
    const known = new Set(await gitList(this.path, ['ls-files', '-z'], this.at))
    const found = changes.find(({ path, isGone }) => !isGone && this.isInTheWay(path, known))
    return found?.path ?? null
  }

  /** Whether something that git does not know of would go for the sake of `path`. */
  private isInTheWay(path: string, known: Set<string>): boolean {
    if (known.has(path)) return false
    const parts = path.split('/')
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const above = parts.slice(0, depth).join('/')
      const stat = lstatSync(fileNamed(this.path, above), { throwIfNoEntry: false })
      if (!stat) return false
      if (stat.isDirectory()) {
        if (depth === parts.length) return this.filesIn(above).some((file) => !known.has(file))
      } else return !known.has(above)
    }
    return false
  }

  private filesIn(folder: string): string[] {
    return readdirSync(fileNamed(this.path, folder), {
      withFileTypes: true,
      encoding: 'latin1',
    }).flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      return entry.isDirectory() ? this.filesIn(path) : [path]
    })
  }

  /**
   * Files that have already what is to be landed are not in the way: whoever was broken off here
   * left such ones. Returns those that have something else.
   */
  private async settle(changes: Change[]): Promise<string[]> {
    const isThere = ({ path, isGone }: Change) =>
      !isGone &&
      attempt(() => lstatSync(fileNamed(this.path, path), { throwIfNoEntry: false }), undefined)
    const there = changes.filter(isThere)
    const note = (entries: string[]) => {
      const args = ['update-index', '--add', '--remove', '--replace', '-z', '--index-info']
      return git(this.path, args, { ...this.at, input: nulEnded(entries) })
    }
    await note(there.map(({ now, path }) => `${now}\t${path}`))
    await tryGit(this.path, ['update-index', '-q', '--refresh'], this.at)
    const differ = new Set(await gitList(this.path, ['diff-files', '-z', '--name-only'], this.at))
    const other = there.filter(({ path }) => differ.has(path))
    await note(other.map(({ was, path }) => `${was}\t${path}`))
    return (other.length > 0 ? other : there).map(({ path }) => path)
  }

  /** Its files become those of `now`. Only after `obstacle`, and while its index is locked. */
  async follow(old: string, now: string): Promise<void> {
    await git(this.path, ['read-tree', '-m', '-u', old, now], this.at)
    renameSync(this.index.path, join(this.folder, 'index'))
  }

  /** Nothing is left beside its own index. */
  close(): void {
    this.index.drop()
  }
}

const some = (paths: string[]) => {
  const named = paths.slice(0, PATHS_MAX).map(nameAsText)
  const more = paths.length - named.length
  return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function leadsTo(path: string, common: string): boolean {
  const link = join(path, '.git')
  const named = /^gitdir: (.+)$/m.exec(textOf(link))?.[1] ?? link
  return attempt(() => realpathSync(resolve(path, named)), undefined) === common
}

const textOf = (path: string) => attempt(() => readFileSync(path, 'utf8'), '')
const namesIn = (folder: string) => attempt(() => readdirSync(folder), [])
