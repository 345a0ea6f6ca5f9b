import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { Refusal } from '../core/refusal.ts'
import { realpathOf } from './checkout.ts'
import { sha256, uniqueId } from './digest.ts'
import { statOf } from './file_system.ts'
import { writePrivate } from './private_file.ts'

/**
 * Files as their holders last left them: a record for each reserved file, and a copy of what is in
 * it. Kept on this machine, beside the sessions, because that is where the files are. Bounded: the
 * oldest records go first, and a large file has no copy.
 */
export interface Guarded {
  /** The full path, and what reservations call it. */
  path: string
  name: string
  checkout: string
  project: string | null
  /** Who had it when it was last looked at; empty: nobody, and only the copies are of use. */
  holder: string
  pid: number | null
  /** What stat said, so that most looks need not open the file; empty: there is no file. */
  seen: string
  /** Of what is in it; null: there is no file. */
  digest: string | null
  /** The copy of that; null where there is none. */
  copy: string | null
  /** The copy of what another wrote over. */
  lost?: string
  /** When the holder itself last changed it; 0: never. */
  wrote_ms: number
}

/** Where a file is, and whose it is. */
export type Owned = Pick<Guarded, 'path' | 'name' | 'checkout' | 'project' | 'holder' | 'pid'>

const FOLDER = 'guard'
const RECORD = '.json'
const COPY = '.copy'
const RECORDS_MAX = 500
const COPIES_BYTES_MAX = 64 * 1024 * 1024
const COPY_BYTES_MAX = 1024 * 1024
/** A larger file is known by its size and time. */
const DIGEST_BYTES_MAX = 4 * 1024 * 1024

export const guardFolder = (folder: string) => join(folder, FOLDER)

const nameOf = (path: string) => `${sha256(path).slice(0, 32)}${RECORD}`

/** What is there besides: markers of calls that are under way. */
export function namesIn(folder: string): string[] {
  return attempt(() => readdirSync(guardFolder(folder)), [])
}

export function guardedIn(folder: string, names = namesIn(folder)): Guarded[] {
  return names
    .filter((name) => name.endsWith(RECORD))
    .slice(0, RECORDS_MAX)
    .flatMap((name) => readGuarded(folder, name))
}

const readGuarded = (folder: string, name: string): Guarded[] =>
  attempt(() => [JSON.parse(readFileSync(join(guardFolder(folder), name), 'utf8')) as Guarded], [])

/** A change that keeps size and time still shows in the time of the inode, which nobody sets. */
export function sightOfFile(path: string): string {
  const stat = statOf(path)
  return stat?.isFile() ? `${stat.size} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.ino}` : ''
}

interface Content {
  seen: string
  digest: string | null
  bytes?: Uint8Array
}

/** What is in a file now. */
export function contentOf(path: string): Content {
  const seen = sightOfFile(path)
  if (seen === '') return { seen, digest: null }
  const [size = 0, changed_ms = 0] = seen.split(' ').map(Number)
  if (size > DIGEST_BYTES_MAX) return { seen, digest: `${size} ${Math.floor(changed_ms)}` }
  return attempt(
    () => {
      const bytes = readFileSync(path)
      return { seen, digest: sha256(bytes), bytes }
    },
    { seen, digest: null },
  )
}

/** Takes what is in the file now for what its holder left there. */
export function keepGuarded(folder: string, owned: Owned, wrote_ms: number): void {
  const { seen, digest, bytes } = contentOf(owned.path)
  const isKept = bytes !== undefined && bytes.length <= COPY_BYTES_MAX
  const copy = isKept ? `${digest!.slice(0, 32)}${COPY}` : null
  attempt(() => {
    // Only in a state folder that is there: with a token of a server elsewhere there may be none.
    mkdirSync(guardFolder(folder), { mode: 0o700 })
  }, undefined)
  attempt(() => {
    if (copy !== null && bytes) write(folder, copy, bytes)
    const { lost } = readGuarded(folder, nameOf(owned.path))[0] ?? {}
    const { path, name, checkout, project, holder, pid } = owned
    const whose = { path, name, checkout, project, holder, pid }
    putGuarded(folder, { ...whose, seen, digest, copy, ...(lost && { lost }), wrote_ms })
    makeRoom(folder)
  }, undefined)
}

export function putGuarded(folder: string, record: Guarded): void {
  attempt(() => write(folder, nameOf(record.path), JSON.stringify(record)), undefined)
}

/** Nobody has it any more. What another wrote over is kept as long as there is room. */
export function dropGuarded(folder: string, record: Guarded): void {
  if (record.lost !== undefined) return putGuarded(folder, { ...record, holder: '', pid: null })
  rmSync(join(guardFolder(folder), nameOf(record.path)), { force: true })
}

/** The bytes of a copy; undefined where it had to make room. */
export const copyNamed = (folder: string, name: string): Uint8Array | undefined =>
  attempt(() => readFileSync(join(guardFolder(folder), name)), undefined)

/**
 * Puts `bytes` in the place of a file, and of a link where somebody made one of it: what that leads
 * to is not written. Refuses with `invalid` where the way there leads elsewhere than it did.
 */
export function putBack(path: string, bytes: Uint8Array): void {
  const folder = dirname(path)
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (realpathOf(folder) !== folder || there?.isDirectory()) {
    throw new Refusal('invalid', `${path} cannot be put back: a link or a folder is in its place`, {
      next: 'Look at what is there, and move it away.',
    })
  }
  mkdirSync(folder, { recursive: true })
  const fresh = join(folder, `.${uniqueId()}.restored`)
  writeFileSync(fresh, bytes, { flag: 'wx', mode: there?.isFile() ? there.mode : 0o666 })
  renameSync(fresh, path)
}

const write = (folder: string, name: string, data: string | Uint8Array) =>
  writePrivate(guardFolder(folder), name, data, { synced: false })

/** Copies that no record names go first, then the oldest records with theirs. */
function makeRoom(folder: string): void {
  const files = readdirSync(guardFolder(folder)).map((name) => {
    const stat = statOf(join(guardFolder(folder), name))
    return { name, size: stat?.size ?? 0, ms: stat?.mtimeMs ?? 0 }
  })
  const copies = files.filter(({ name }) => name.endsWith(COPY))
  const records = files.filter(({ name }) => name.endsWith(RECORD)).toSorted((a, b) => b.ms - a.ms)
  const bytes = copies.reduce((sum, { size }) => sum + size, 0)
  if (records.length <= RECORDS_MAX && bytes <= COPIES_BYTES_MAX) return
  let left = COPIES_BYTES_MAX
  const kept = new Set<string>()
  for (const { name } of records.slice(0, RECORDS_MAX)) {
    const [record] = readGuarded(folder, name)
    const named = [record?.copy, record?.lost].filter((each) => typeof each === 'string')
    left -= copies.reduce((sum, each) => sum + (named.includes(each.name) ? each.size : 0), 0)
    if (left < 0) break
    for (const each of [name, ...named]) kept.add(each)
  }
  for (const { name } of [...copies, ...records]) {
    if (!kept.has(name)) rmSync(join(guardFolder(folder), name), { force: true })
  }
}
