import { copyFileSync, existsSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { uniqueId } from './digest.ts'
import { commitOf, git, type GitOptions, nulEnded, tryGit } from './git.ts'

/** A copy of a checkout's index, beside it: what is done to the copy is a trial. */
export class IndexCopy {
  readonly path: string

  constructor(private readonly admin: string) {
    this.path = join(admin, `leasehold-index-${process.pid}`)
  }

  /**
   * Copies it with its age: by that git tells which files it has to look into, those just as young.
   * A copy of now would call a change of the last second, of the same size, none.
   */
  take(): boolean {
    const own = join(this.admin, 'index')
    if (!existsSync(own)) return false
    const written = Math.floor(statSync(own).mtimeMs / 1000)
    copyFileSync(own, this.path)
    utimesSync(this.path, written, written)
    return true
  }

  drop(): void {
    for (const name of [this.path, `${this.path}.lock`]) rmSync(name, { force: true })
  }
}

/** What a commit is to keep: files as a tree, what was staged, and commits. */
interface Kept {
  tree: string
  /** As a tree, where it is another one. */
  staged?: string | undefined
  head: string | undefined
  others?: (string | undefined)[]
  message: string
}

/** Saves all of it under `ref`, above what was there `before`; refuses if that has changed. */
export async function saveUnder(
  cwd: string,
  ref: string,
  { tree, staged, head, others = [], message }: Kept,
  before?: string,
): Promise<string> {
  const commitTree = (files: string, said: string, parents: (string | undefined)[]) => {
    const known = [...new Set(parents)].filter((each) => each !== undefined)
    const args = ['commit-tree', files, '-m', said, ...known.flatMap((each) => ['-p', each])]
    return git(cwd, args)
  }
  const stage = staged && (await commitTree(staged, 'What was staged', [head]))
  const commit = await commitTree(tree, message, [head, stage, ...others, before])
  await git(cwd, ['update-ref', ref, commit, before ?? ''])
  return commit
}

/**
 * Saves `paths` of a checkout, relative to its top, as they are, with what is staged, and answers
 * the new ref below refs/leasehold/salvage: content, mode, and that a file is gone. Changes neither
 * the files nor the index. Refuses where git cannot take them: then nothing was saved.
 */
export async function saveFiles(
  top: string,
  paths: string[],
  message: string,
  timeout_ms: number,
): Promise<string> {
  const index = new IndexCopy(await git(top, ['rev-parse', '--absolute-git-dir'], { timeout_ms }))
  const at: GitOptions = { timeout_ms, env: { GIT_INDEX_FILE: index.path } }
  try {
    index.take()
    const { code, out } = await tryGit(top, ['write-tree'], at)
    const args = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin']
    await git(top, args, { ...at, input: nulEnded(paths) })
    const tree = await git(top, ['write-tree'], at)
    const staged = code === 0 && out.trim() !== tree ? out.trim() : undefined
    const head = await commitOf(top, 'HEAD', { timeout_ms })
    const ref = `refs/leasehold/salvage/discarded-${uniqueId().slice(0, 12)}`
    await saveUnder(top, ref, { tree, staged, head, message })
    return ref
  } finally {
    index.drop()
  }
}
