import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { uniqueId } from './digest.ts'
import { commitOf, commitTree, copyIndex, git, tryGit } from './git.ts'

/** Names of what was saved, relative to the top of the checkout. */
export interface SavedFiles {
  ref: string
  paths: string[]
}

/**
 * Saves `paths` of a checkout as they are, with what is staged, in a commit of their own to which a
 * new ref below refs/leasehold/salvage leads: content, mode, and that a file is gone. Changes
 * neither the files nor the index. Refuses where git cannot take them: then nothing was saved.
 */
export async function saveFiles(
  top: string,
  paths: string[],
  message: string,
  timeout_ms: number,
): Promise<SavedFiles> {
  const at = { timeout_ms }
  const admin = await git(top, ['rev-parse', '--absolute-git-dir'], at)
  const index = join(admin, `leasehold-index-${process.pid}`)
  const own = join(admin, 'index')
  const env = { GIT_INDEX_FILE: index }
  try {
    copyIndex(own, index)
    const staged = await tryGit(top, ['write-tree'], { ...at, env })
    const input = paths.map((path) => `${path}\0`).join('')
    const args = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin']
    await git(top, args, { ...at, env, input })
    const tree = await git(top, ['write-tree'], { ...at, env })
    const head = await commitOf(top, 'HEAD', at)
    const stage = staged.code === 0 ? staged.out.trim() : tree
    const below = stage === tree ? head : await commitTree(top, stage, 'What was staged', [head])
    const commit = await commitTree(top, tree, message, [head, below])
    const ref = `refs/leasehold/salvage/discarded-${uniqueId().slice(0, 12)}`
    await git(top, ['update-ref', ref, commit, ''], at)
    return { ref, paths }
  } finally {
    for (const name of [index, `${index}.lock`]) rmSync(name, { force: true })
  }
}
