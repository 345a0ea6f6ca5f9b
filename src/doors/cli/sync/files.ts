import { constants, existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { link, open, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isUtf8 } from 'node:buffer'
import { attempt } from '../../../core/attempt.ts'
import { NOTE_BYTES_MAX } from '../../../core/bounds.ts'
import { step } from '../../../machine/test_build.ts'
import { sha256, uniqueId } from '../../../machine/digest.ts'
import { systemCode } from '../../../machine/errors.ts'
import { writeDurably } from '../../../stores/file/durable.ts'
import { isOurs } from './names.ts'

/** A content as long as it may be, and its front matter. */
const BYTES_MAX = NOTE_BYTES_MAX + 64 * 1024

/** In bytes, with room for what is added to a name for a moment, and for a sibling's. */
const NAME_BYTES_MAX = 200

/** What was taken away to make room for another, until that is in place. */
const OLD = /^\.(.+)\.lh-old$/
const NEW = /\.lh-new$/

export interface FoundFile {
  path: string
  text: string
  hash: string
}

/** What is at `path`, unless its name leaves no room for what a sync does with it. */
export async function readNamed(
  dir: string,
  path: string,
): Promise<FoundFile | string | undefined> {
  const isLong = Buffer.byteLength(basename(path)) > NAME_BYTES_MAX
  return isLong ? `its name is longer than ${NAME_BYTES_MAX} bytes` : read(dir, path)
}

/** Undefined where there is no file; a sentence where there is one that cannot be used. */
async function read(dir: string, path: string): Promise<FoundFile | string | undefined> {
  const full = join(dir, path)
  const stats = lstatSync(full, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (!stats.isFile()) return 'it is not a plain file'
  if (stats.size > BYTES_MAX) return `it is longer than ${BYTES_MAX} bytes`
  // Looked at above, but it may be another by now.
  const file = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined)
  if (!file) return 'it cannot be read'
  try {
    const bytes = await file.readFile()
    if (!isUtf8(bytes)) return 'it is not text (UTF-8)'
    return { path, text: bytes.toString('utf8'), hash: sha256(bytes) }
  } finally {
    await file.close()
  }
}

/** The folders in which there may be files of ours. Links are not followed. */
function foldersIn(dir: string): string[] {
  const kinds = KINDS.filter((kind) => isFolder(join(dir, kind)))
  const named = kinds.flatMap((kind) => namesIn(join(dir, kind)).map((n) => `${kind}/${n}`))
  return ['global', ...named].filter((folder) => isFolder(join(dir, folder)))
}

const KINDS = ['project', 'user', 'task']

const isFolder = (path: string) =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** A folder that may not be read, or is gone by now, is empty to us; `strangeFolder` says why. */
const namesIn = (folder: string) => attempt(() => readdirSync(folder), [])

/**
 * Why nothing can be said about the files of the folder that `path` is in: something else is in its
 * place, or it may not be read. Undefined where it is a folder, or where there is nothing at all.
 */
export function strangeFolder(dir: string, path: string): string | undefined {
  let at = ''
  for (const part of dirname(path).split('/')) {
    at = join(at, part)
    const stats = lstatSync(join(dir, at), { throwIfNoEntry: false })
    if (!stats) return undefined
    if (stats.isSymbolicLink()) return `${at} is a link, and links are not followed`
    if (!stats.isDirectory()) return `${at} is not a folder`
    try {
      readdirSync(join(dir, at))
    } catch (error) {
      return `${at} cannot be read (${systemCode(error) ?? 'unknown'})`
    }
  }
  return undefined
}

/** Paths of all files of notes, in order. */
export function list(dir: string): string[] {
  const paths = foldersIn(dir).flatMap((folder) =>
    namesIn(join(dir, folder)).map((name) => `${folder}/${name}`),
  )
  return paths.filter((path) => isOurs(path) && !basename(path).startsWith('.')).toSorted()
}

/** Not the folder itself: if that was taken away, so were the files that are in it. */
function makeFolders(dir: string, path: string): void {
  let at = dir
  for (const part of dirname(path).split('/')) {
    at = join(at, part)
    if (!isFolder(at)) mkdirSync(at)
  }
}

/** A new file beside the place where it is to be; nobody takes it for a note. */
async function writeFresh(dir: string, path: string, text: string): Promise<string> {
  const full = join(dir, path)
  makeFolders(dir, path)
  const fresh = `${full}.${uniqueId().slice(0, 8)}.lh-new`
  try {
    await writeDurably(fresh, Buffer.from(text))
  } catch (error) {
    rmSync(fresh, { force: true })
    throw error
  }
  return fresh
}

/** link(2) never replaces what is there; false when something is. */
async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw error
  }
}

/** Puts a new file in place; false when there is one already, which is left as it is. */
export async function create(dir: string, path: string, text: string): Promise<boolean> {
  const full = join(dir, path)
  const fresh = await writeFresh(dir, path, text)
  try {
    return await linkUnlessThere(fresh, full)
  } finally {
    await unlink(fresh)
  }
}

/**
 * Takes a file away if it is still the one with this hash, and puts `text` in its place unless that
 * is null. What somebody saved meanwhile is put back, or left where it is: nothing is overwritten.
 * False when that happened.
 */
export async function replace(
  dir: string,
  path: string,
  hash: string,
  text: string | null,
): Promise<boolean> {
  const full = join(dir, path)
  const old = oldOf(full)
  // Written first: where the disk is full, the file that is there stays where it is.
  const fresh = text === null ? undefined : await writeFresh(dir, path, text)
  try {
    await rename(full, old)
    step('sync:taken')
    const taken = await read(dir, relativeOld(path))
    if (typeof taken !== 'object' || taken.hash !== hash) {
      await putBack(old, full)
      return false
    }
    const done = fresh === undefined || (await linkUnlessThere(fresh, full))
    step('sync:placed')
    await unlink(old)
    return done
  } catch (error) {
    if (systemCode(error) === 'ENOENT' && !existsSync(old)) return text === null
    if (existsSync(old)) await putBack(old, full)
    throw error
  } finally {
    if (fresh !== undefined) rmSync(fresh, { force: true })
  }
}

const oldOf = (full: string) => join(dirname(full), `.${basename(full)}.lh-old`)
const relativeOld = (path: string) => join(dirname(path), `.${basename(path)}.lh-old`)

async function putBack(old: string, full: string): Promise<void> {
  // Somebody put a folder there meanwhile. It takes no other name than its own.
  if (isFolder(old)) return rename(old, full)
  if (await linkUnlessThere(old, full)) await unlink(old)
  // There is a newer one already: both stay, and the older is told by its name.
  else await rename(old, full.replace(/\.md$/, `.saved-${uniqueId().slice(0, 8)}.md`))
}

/**
 * After a sync that was killed: what it had taken away and not yet replaced comes back. `isKnown`
 * says whether the store has what a file says.
 */
export async function recover(
  dir: string,
  isKnown: (path: string, hash: string) => boolean,
): Promise<void> {
  for (const name of readdirSync(dir)) if (NEW.test(name)) rmSync(join(dir, name), { force: true })
  for (const folder of foldersIn(dir)) {
    for (const name of namesIn(join(dir, folder))) {
      const full = join(dir, folder, name)
      if (NEW.test(name)) rmSync(full, { force: true })
      const [, was] = OLD.exec(name) ?? []
      if (was === undefined) continue
      const found = await read(dir, `${folder}/${name}`)
      const known = typeof found === 'object' && isKnown(`${folder}/${was}`, found.hash)
      if (known && existsSync(join(dir, folder, was))) rmSync(full)
      else await putBack(full, join(dir, folder, was))
    }
  }
}
