import { constants, existsSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { link, mkdir, open, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isUtf8 } from 'node:buffer'
import { step } from '../../../daemon/steps.ts'
import { sha256, uniqueId } from '../../../stores/digest.ts'
import { writeDurably } from '../../../stores/file/durable.ts'
import { isOurs } from './names.ts'

/** A content of 1 MB, and its front matter. */
const BYTES_MAX = 1024 * 1024 + 64 * 1024

/** What was taken away to make room for another, until that is in place. */
const OLD = /^\.(.+)\.lh-old$/
const NEW = /\.lh-new$/

export interface Found {
  path: string
  text: string
  hash: string
}

/** Undefined where there is no file; a sentence where there is one that cannot be used. */
export async function read(dir: string, path: string): Promise<Found | string | undefined> {
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
  const kinds = ['project', 'user', 'task'].filter((kind) => isFolder(join(dir, kind)))
  const named = kinds.flatMap((kind) => readdirSync(join(dir, kind)).map((n) => `${kind}/${n}`))
  return ['global', ...named].filter((folder) => isFolder(join(dir, folder)))
}

const isFolder = (path: string) =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Paths of all files of notes, in order. */
export function list(dir: string): string[] {
  const paths = foldersIn(dir).flatMap((folder) =>
    readdirSync(join(dir, folder)).map((name) => `${folder}/${name}`),
  )
  return paths.filter((path) => isOurs(path) && !basename(path).startsWith('.')).toSorted()
}

/** Puts a new file in place; false when there is one already, which is left as it is. */
export async function create(dir: string, path: string, text: string): Promise<boolean> {
  const full = join(dir, path)
  await mkdir(dirname(full), { recursive: true })
  const fresh = `${full}.${uniqueId().slice(0, 8)}.lh-new`
  await writeDurably(fresh, Buffer.from(text))
  try {
    // link(2) never replaces what is there.
    await link(fresh, full)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
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
  try {
    await rename(full, old)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return text === null
  }
  step('sync:taken')
  const taken = await read(dir, relativeOld(path))
  if (typeof taken !== 'object' || taken.hash !== hash) {
    await putBack(old, full)
    return false
  }
  const done = text === null || (await create(dir, path, text))
  step('sync:placed')
  await unlink(old)
  return done
}

const oldOf = (full: string) => join(dirname(full), `.${basename(full)}.lh-old`)
const relativeOld = (path: string) => join(dirname(path), `.${basename(path)}.lh-old`)

async function putBack(old: string, full: string): Promise<void> {
  try {
    await link(old, full)
    await unlink(old)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // There is a newer one already: both stay, and the older is told by its name.
    await rename(old, full.replace(/\.md$/, `.saved-${uniqueId().slice(0, 8)}.md`))
  }
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
    for (const name of readdirSync(join(dir, folder))) {
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
