import type { Worktree } from '../../core/schema/worktree.ts'
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import {
  commitOf,
  EMPTY_TREE,
  fileNamed,
  git,
  gitList,
  type GitOptions,
  nameAsText,
  nulEnded,
  tryGit,
} from '../../machine/git.ts'
import { IndexCopy } from '../../machine/git_save.ts'
import { systemCode } from '../../machine/errors.ts'
import { adminOf, gitAt, headOf, locationOf, type SalvageRules } from './tree.ts'

/** All that is in a worktree at this moment, as git objects that no ref names yet. */
export interface Captured {
  /** The files, as a tree. */
  tree: string
  /** What was staged, as a tree, where that is another one. */
  staged: string | undefined
  /** The other side of a merge that is under way. */
  merging: string | undefined
  /** Whether a file or the stage differs from what is checked out. */
  isDirty: boolean
  /** Ignored, and so not saved; `apart`: of value, and cannot be saved here. */
  left_out: string[]
  apart: string[]
}

/** Nobody else can begin in this repository meanwhile. */
const FILTER_MS = 30_000
/** There is no file, or there can be none: a tree may have names that no disk takes. */
const CANNOT_BE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'])

/**
 * Looks at every file of a worktree, and puts what differs into the repository. Changes neither the
 * files nor the index. Undefined when there are no files any more.
 */
export async function capture(
  tree: Worktree,
  rules: SalvageRules,
  location = locationOf(tree),
): Promise<Captured | undefined> {
  if (location === undefined) return undefined
  return new Capture(tree, location, rules).take()
}

/** Paths are as git has them, byte by byte: see `encoding` in src/machine/git.ts. */
class Capture {
  private readonly admin: string
  private readonly index: IndexCopy
  private readonly at: GitOptions
  private hangs = false
  private readonly left_out: string[] = []
  private readonly apart: string[] = []
  private isUnfilled = false

  constructor(
    private readonly tree: Worktree,
    private readonly location: string,
    private readonly rules: SalvageRules,
  ) {
    this.admin = adminOf(tree)
    const folder = existsSync(this.admin) ? this.admin : tree.repository
    this.index = new IndexCopy(folder)
    this.at = { ...gitAt(tree, location, this.index.path), encoding: 'latin1' }
  }

  async take(): Promise<Captured> {
    try {
      const head = await headOf(this.tree)
      const headTree =
        head === undefined ? EMPTY_TREE : await this.git(['rev-parse', `${head}^{tree}`])
      const staged = await this.readIndex(headTree)
      await this.add(await this.paths())
      const tree = await this.writeTree()
      await this.noteRepositories()
      const merging = await this.commit('MERGE_HEAD')
      const isStaged = staged !== undefined && staged !== headTree && staged !== tree
      const differs = tree !== headTree && (!this.isUnfilled || (await this.adds(headTree, tree)))
      const isDirty = differs || isStaged || merging !== undefined
      const [left_out, apart] = [this.left_out.map(nameAsText), this.apart.map(nameAsText)]
      return { tree, staged: isStaged ? staged : undefined, merging, isDirty, left_out, apart }
    } finally {
      this.index.drop()
    }
  }

  /** Objects that git has lost keep nothing else from being saved. */
  private async writeTree(): Promise<string> {
    const { code, out } = await tryGit(this.location, ['write-tree'], this.at)
    if (code === 0) return out.trim()
    this.apart.push('objects that git has lost')
    return this.git(['write-tree', '--missing-ok'])
  }

  /** Of a worktree that git has not filled yet, what is not there was not removed. */
  private async adds(from: string, to: string): Promise<boolean> {
    const args = ['diff-tree', '-r', '-z', '--name-only', '--diff-filter=d', from, to]
    return (await this.list(args)).length > 0
  }

  private git(args: string[], input?: string): Promise<string> {
    return git(this.location, args, { ...this.at, input })
  }

  private list(args: string[]): Promise<string[]> {
    return gitList(this.location, args, this.at)
  }

  private async commit(name: string): Promise<string | undefined> {
    return commitOf(this.location, name, this.at)
  }

  /** Begins with a copy of the index, which knows what is unchanged; returns what is staged. */
  private async readIndex(headTree: string): Promise<string | undefined> {
    const own = join(this.admin, 'index')
    this.isUnfilled = existsSync(join(this.admin, 'HEAD')) && !existsSync(own)
    if (this.index.take()) {
      const { code } = await tryGit(this.location, ['ls-files', '--error-unmatch', '.'], this.at)
      // Only what git cannot read at all is given up: 1 says that nothing is in it.
      if (code <= 1) {
        const staged = await tryGit(this.location, ['write-tree'], this.at)
        return staged.code === 0 ? staged.out.trim() : undefined
      }
      this.index.drop()
    }
    await this.git(['read-tree', headTree])
    return undefined
  }

  /** Everything that may differ from the index, and is to be saved. */
  private async paths(): Promise<string[]> {
    await this.unhide()
    const changed = await this.list([
      'diff-files',
      '-z',
      '--name-only',
      '--ignore-submodules=dirty',
    ])
    const others = await this.list(['ls-files', '-z', '--others', '--exclude-standard'])
    const all = [...changed, ...others, ...(await this.ignored())]
    // A folder among files is a repository of its own: git keeps only a commit's name of it.
    for (const path of all) if (path.endsWith('/')) this.apart.push(path)
    return [...new Set(all)].filter((path) => !path.endsWith('/'))
  }

  /** Files that an agent told git not to look at are looked at all the same. */
  private async unhide(): Promise<void> {
    const tagged = await this.list(['ls-files', '-z', '-v'])
    const named = (is: (tag: string) => boolean) =>
      tagged.filter((each) => is(each[0]!)).map((each) => each.slice(2))
    const assumed = named((tag) => /[a-z]/.test(tag))
    const skipped = named((tag) => tag === 'S' || tag === 's')
    const there = skipped.filter((path) => this.statOf(path) !== undefined)
    const shown = { 'no-assume-unchanged': assumed, 'no-skip-worktree': there }
    for (const [flag, paths] of Object.entries(shown)) {
      if (paths.length > 0)
        await this.git(['update-index', `--${flag}`, '-z', '--stdin'], nulEnded(paths))
    }
  }

  /** Ignored files: by the globs that were given, else those outside of ignored folders. */
  private async ignored(): Promise<string[]> {
    const { ignored, bytes_max } = this.rules
    const asked = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard']
    const globs = ignored?.map((glob) => `:(glob)${glob}`)
    if (globs?.length === 0) return []
    const found = await this.list([...asked, ...(globs ? ['--', ...globs] : ['--directory'])])
    return found.filter((path) => {
      if (path.endsWith('/')) return false
      const bytes = this.statOf(path)?.size ?? 0
      if (bytes > bytes_max) this.left_out.push(`${path} (ignored, ${bytes} bytes)`)
      return bytes <= bytes_max && !this.isCopy(path)
    })
  }

  /** What was copied from the main checkout and is the same there is not lost with this copy. */
  private isCopy(path: string): boolean {
    const main = fileNamed(dirname(this.tree.repository), path)
    const same = () => readFileSync(main).equals(readFileSync(fileNamed(this.location, path)))
    return attempt(same, false)
  }

  private statOf(path: string) {
    try {
      return lstatSync(fileNamed(this.location, path))
    } catch (error) {
      if (!CANNOT_BE.has(systemCode(error) ?? '')) throw error
      return undefined
    }
  }

  /** One that git cannot take as it is (a filter fails, say) is taken byte by byte. */
  private async add(paths: string[]): Promise<void> {
    if (paths.length === 0) return
    const args = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin']
    // A filter that hangs is a filter that fails; it is not waited for again, file by file.
    const at = { ...this.at, input: nulEnded(paths), timeout_ms: FILTER_MS }
    const said = this.hangs
      ? undefined
      : await tryGit(this.location, args, at).catch(() => undefined)
    this.hangs ||= said === undefined
    if (said?.code === 0) return
    if (paths.length > 1) {
      const half = Math.ceil(paths.length / 2)
      await this.add(paths.slice(0, half))
      return this.add(paths.slice(half))
    }
    const [path] = paths as [string]
    const hash = ['hash-object', '-w', '--no-filters', '--stdin-paths']
    const input = `${quoted(path)}\n`
    const { code: failed, out } = await tryGit(this.location, hash, { ...this.at, input })
    if (failed !== 0) return void this.apart.push(path)
    const isProgram = ((this.statOf(path)?.mode ?? 0) & 0o100) !== 0
    const entry = `${isProgram ? '100755' : '100644'} ${out.trim()}\t${path}\0`
    await this.git(['update-index', '--add', '--replace', '-z', '--index-info'], entry)
  }

  /** Submodules and other repositories inside have files and commits that this one has not. */
  private async noteRepositories(): Promise<void> {
    const entries = await this.list(['ls-files', '-z', '--stage'])
    for (const entry of entries) {
      const [, path = ''] = entry.split('\t')
      const isFilled = () => readdirSync(fileNamed(this.location, path)).length > 0
      if (entry.startsWith('160000') && attempt(isFilled, false)) this.apart.push(`${path}/`)
    }
  }
}

/** As git reads it from a line, whatever is in it. */
const quoted = (path: string) => {
  const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`
  return `"${[...Buffer.from(path, 'latin1')].map(octal).join('')}"`
}
