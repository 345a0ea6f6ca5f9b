import { lstatSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { Refusal } from '../core/refusal.ts'
import { realpathOf } from './checkout.ts'
import { sha256, uniqueId } from './digest.ts'
import { statOf } from './file_system.ts'
import { LocalFiles } from './local_files.ts'

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

const RECORD = '.json'
const COPY = '.copy'
const RECORDS_MAX = 500
const COPIES_BYTES_MAX = 64 * 1024 * 1024
const COPY_BYTES_MAX = 1024 * 1024
/** A larger file is known by its size and time. */
const DIGEST_BYTES_MAX = 4 * 1024 * 1024

/** Markers of calls that are under way are there besides. */
export const guardFiles = (state: string) => new LocalFiles(state, 'guard')

const nameOf = (path: string) => `${sha256(path).slice(0, 32)}${RECORD}`

export function guardedIn(state: string, names = guardFiles(state).names()): Guarded[] {
  const records = names.filter((name) => name.endsWith(RECORD)).slice(0, RECORDS_MAX)
  return records.flatMap((name) => guardFiles(state).read<Guarded | null>(name, null) ?? [])
}

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
export function keepGuarded(state: string, owned: Owned, wrote_ms: number): void {
  const { seen, digest, bytes } = contentOf(owned.path)
  const isKept = bytes !== undefined && bytes.length <= COPY_BYTES_MAX
  const copy = isKept ? `${digest!.slice(0, 32)}${COPY}` : null
  attempt(() => {
    const files = guardFiles(state)
    if (copy !== null && bytes) files.put(copy, bytes)
    const { lost } = files.read<Partial<Guarded>>(nameOf(owned.path), {})
    const { path, name, checkout, project, holder, pid } = owned
    const whose = { path, name, checkout, project, holder, pid }
    putGuarded(state, { ...whose, seen, digest, copy, ...(lost && { lost }), wrote_ms })
    makeRoom(files)
  }, undefined)
}

export const putGuarded = (state: string, record: Guarded) =>
  guardFiles(state).put(nameOf(record.path), record)

/** Nobody has it any more. What another wrote over is kept as long as there is room. */
export function dropGuarded(state: string, record: Guarded): void {
  if (record.lost !== undefined) return putGuarded(state, { ...record, holder: '', pid: null })
  guardFiles(state).drop(nameOf(record.path))
}

/** The bytes of a copy; undefined where it had to make room. */
export const copyNamed = (state: string, name: string) => guardFiles(state).bytes(name)

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

/** Copies that no record names go first, then the oldest records with theirs. */
function makeRoom(guard: LocalFiles): void {
  const files = guard.names().map((name) => {
    const stat = statOf(join(guard.folder, name))
    return { name, size: stat?.size ?? 0, ms: stat?.mtimeMs ?? 0 }
  })
  const copies = files.filter(({ name }) => name.endsWith(COPY))
  const records = files.filter(({ name }) => name.endsWith(RECORD)).toSorted((a, b) => b.ms - a.ms)
  const bytes = copies.reduce((sum, { size }) => sum + size, 0)
  if (records.length <= RECORDS_MAX && bytes <= COPIES_BYTES_MAX) return
  let left = COPIES_BYTES_MAX
  const kept = new Set<string>()
  for (const { name } of records.slice(0, RECORDS_MAX)) {
    const { copy, lost } = guard.read<Partial<Guarded>>(name, {})
    const named = [copy, lost].filter((each) => typeof each === 'string')
    left -= copies.reduce((sum, each) => sum + (named.includes(each.name) ? each.size : 0), 0)
    if (left < 0) break
    for (const each of [name, ...named]) kept.add(each)
  }
  for (const { name } of [...copies, ...records]) if (!kept.has(name)) guard.drop(name)
}
