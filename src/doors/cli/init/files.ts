import * as fs from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { Refusal } from '../../../core/refusal.ts'
import { uniqueId } from '../../../machine/digest.ts'
import { systemCode } from '../../../machine/errors.ts'

/** What stands at a path: nothing, a file with its bytes, or a symbolic link. */
export type FileState =
  | { kind: 'missing' }
  | { kind: 'file'; bytes: Buffer; mode: number }
  | { kind: 'link'; target: string }

export const MISSING: FileState = { kind: 'missing' }
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = fs.constants

/** Looks without following a link. Refuses what is neither a file nor a link. */
export function lookAt(path: string): FileState {
  const stat = statOf(path)
  if (!stat) return MISSING
  if (stat.isSymbolicLink()) return { kind: 'link', target: fs.readlinkSync(path) }
  if (!stat.isFile()) {
    throw new Refusal('invalid', `${path} is not a file`, {
      next: 'Move it away, then run leasehold init again. Nothing was written.',
    })
  }
  const file = fs.openSync(path, O_RDONLY | O_NOFOLLOW)
  try {
    return { kind: 'file', bytes: fs.readFileSync(file), mode: stat.mode & 0o7777 }
  } finally {
    fs.closeSync(file)
  }
}

function statOf(path: string) {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    // A file stands where a folder should be.
    if (systemCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export function isSame(one: FileState, other: FileState): boolean {
  if (one.kind === 'file' && other.kind === 'file') {
    return one.bytes.equals(other.bytes) && one.mode === other.mode
  }
  if (one.kind === 'link' && other.kind === 'link') return one.target === other.target
  return one.kind === other.kind
}

/**
 * The path that is meant, with links followed as long as they stay inside one of `bounds`. Refuses
 * a link that leads out of there: the author of the link could have us write anywhere.
 */
export function insidePath(path: string, bounds: string[]): string {
  const real = realPathOf(path)
  if (real !== undefined && bounds.some((bound) => isInside(real, bound))) return real
  const why = real === undefined ? 'leads nowhere' : `leads to ${real}, outside of this checkout`
  throw new Refusal('forbidden', `${path} is a link, or in one, that ${why}`, {
    next: 'Put a file or folder of the checkout in its place. Nothing was written.',
    details: { path },
  })
}

/** Of a path that does not exist yet: its first ancestor that does, and the rest of it. */
function realPathOf(path: string): string | undefined {
  try {
    return fs.realpathSync(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ENOTDIR') throw error
    if (statOf(path)?.isSymbolicLink() || dirname(path) === path) return undefined
    const above = realPathOf(dirname(path))
    return above === undefined ? undefined : join(above, basename(path))
  }
}

export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`)
}

/**
 * Makes `path` be `state`, in one step: a reader sees all of the old file or all of the new. What
 * is being written stands in `scratch` until then, so that a process that dies leaves nothing
 * behind.
 */
export function putFile(path: string, state: FileState, scratch: string): void {
  if (state.kind === 'missing') {
    if (lookAt(path).kind !== 'missing') fs.unlinkSync(path)
    return
  }
  try {
    fs.renameSync(made(join(scratch, `new-${uniqueId()}`), state), path)
  } catch (error) {
    // The scratch folder may be on another disk, e.g. in another worktree's.
    if (systemCode(error) !== 'EXDEV') throw error
    fs.renameSync(made(`${path}.leasehold-${uniqueId()}`, state), path)
  }
}

function made(temporary: string, state: Exclude<FileState, { kind: 'missing' }>): string {
  if (state.kind === 'link') {
    fs.symlinkSync(state.target, temporary)
    return temporary
  }
  const file = fs.openSync(temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600)
  try {
    for (let at = 0; at < state.bytes.length;) at += fs.writeSync(file, state.bytes, at)
    fs.fsyncSync(file)
  } finally {
    fs.closeSync(file)
  }
  fs.chmodSync(temporary, state.mode)
  return temporary
}
