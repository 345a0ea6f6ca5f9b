import { existsSync, statfsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Refusal } from '../../core/refusal.ts'
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'

/**
 * SQLite through the `node:sqlite` API: Node's own where it is complete, else the package that
 * carries the same API and its own binary. Nothing else in the project names either of them.
 */
type Sqlite = typeof import('@photostructure/sqlite')

export type Database = DatabaseSyncInstance
export type Statement = StatementSyncInstance
export type SqliteValue = string | number | null | Uint8Array

let loaded: Sqlite | undefined

/** Refuses (`internal`) where the module is not there, or was made for another machine. */
export function loadSqlite(): Sqlite {
  if (loaded) return loaded
  const load = createRequire(import.meta.url)
  // Before 24.15 the built-in lacks something that the writer relies on, or prints a warning.
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const isComplete = major > 24 || (major === 24 && minor >= 15)
  try {
    loaded = load(isComplete ? 'node:sqlite' : '@photostructure/sqlite') as Sqlite
  } catch (error) {
    throw notLoaded(error as Error)
  }
  return loaded
}

function notLoaded({ message }: Error): Refusal {
  const why = message.split('\n')[0]
  return new Refusal('internal', `SQLite could not be loaded in Node ${process.version}: ${why}`, {
    next:
      'Install leasehold anew for this Node and machine. To do without SQLite, in a store of ' +
      'plain files: LEASEHOLD_STORE=file:FOLDER, or file: where there is no database yet.',
  })
}

/** `timeout_ms` blocks the event loop: for commands that do nothing else meanwhile. */
export function openDatabase(
  path: string,
  { readOnly, timeout_ms = 0 }: { readOnly: boolean; timeout_ms?: number },
): Database {
  const { DatabaseSync } = loadSqlite()
  if (isCramped(path)) throw new Cramped('database or disk is full')
  return new DatabaseSync(path, { readOnly, timeout: timeout_ms })
}

/** What SQLite says of a full disk, where it would not live to say it. */
class Cramped extends Error {
  readonly errcode = RESULT.full
}

/** SQLite allocates the index beside a database page by page, by writing the end of each. */
const PAGE_BYTES = 4_096
const INDEX_BYTES = 32_768

/**
 * Whether the file system may have no room for all of that index. It is written as memory: where
 * blocks are smaller than pages, a full disk is told by a signal that ends the process. Where
 * another process has written all of it, it has its room.
 */
function isCramped(path: string): boolean {
  const folder = dirname(path)
  if (!existsSync(folder)) return false
  const { bsize, bavail } = statfsSync(folder)
  if (bsize >= PAGE_BYTES || bsize * bavail >= 2 * INDEX_BYTES) return false
  const index = statSync(`${path}-shm`, { throwIfNoEntry: false })
  return (index?.blocks ?? 0) * BLOCK_BYTES < INDEX_BYTES
}

/** What `stat` counts in, whatever the file system does. */
const BLOCK_BYTES = 512

/** Reads the file as it is, without locks or side files: only right while nobody can write it. */
export function openUnchanging(path: string): Database {
  const { DatabaseSync } = loadSqlite()
  const address = pathToFileURL(path)
  address.search = '?immutable=1'
  return new DatabaseSync(address, { readOnly: true })
}

/** Copies a live database page by page, consistently, while others write. */
export function copyDatabase(from: Database, to: string): Promise<number> {
  return loadSqlite().backup(from, to)
}

/** SQLite's primary result code of an error that it threw; undefined for any other error. */
export function resultCode(error: unknown): number | undefined {
  const { errcode, code, message } = (error ?? {}) as Partial<SqliteError>
  if (typeof errcode === 'number') return errcode & 0xff
  // Reading several rows, the package says what SQLite said, and leaves the number out.
  return code === 'ERR_SQLITE_ERROR' ? SAID[message ?? ''] : undefined
}

interface SqliteError {
  errcode: number
  code: string
  message: string
}

/** The file ends before the page that was to be read: it was cut off. */
export const isShortRead = (error: unknown) =>
  (error as { errcode?: unknown } | null)?.errcode === 0x20a

export const RESULT = {
  error: 1,
  busy: 5,
  locked: 6,
  readonly: 8,
  io: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  constraint: 19,
  notadb: 26,
} as const

/** SQLite's own words for its numbers. */
const SAID: Record<string, number> = {
  'database is locked': RESULT.busy,
  'database table is locked': RESULT.locked,
  'attempt to write a readonly database': RESULT.readonly,
  'disk I/O error': RESULT.io,
  'database disk image is malformed': RESULT.corrupt,
  'database or disk is full': RESULT.full,
  'unable to open database file': RESULT.cantopen,
  'file is not a database': RESULT.notadb,
}
