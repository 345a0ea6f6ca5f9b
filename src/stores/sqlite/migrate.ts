import { readFileSync } from 'node:fs'
import { Refusal } from '../../core/refusal.ts'
import { EMPTY_HEAD } from '../writer/chain.ts'
import { readEpoch } from '../epoch.ts'
import { beginPatiently, patiently } from './busy.ts'
import { refuseNewerSchema } from '../successor.ts'
import { Unreadable } from './codec.ts'
import type { Database } from './driver.ts'
import { makeTables } from './shape.ts'
import type { Statements } from './statements.ts'
import { sumAnew } from './sums.ts'

/**
 * Numbered scripts that bring a database of an older program up to date, each applied once. A
 * released one is never edited; the next is added. A new database is made as the schema says.
 */
const SCRIPTS = [
  '001_begin.sql',
  '002_tokens.sql',
  '003_queue.sql',
  '004_reservations.sql',
  '005_memory.sql',
  '006_stats.sql',
  '007_search.sql',
  '008_lines.sql',
  '009_retention.sql',
  '010_token_scope.sql',
  '011_hosts.sql',
  '012_row_sums.sql',
  '013_schema.sql',
] as const

/** A script is known by its number, not by its place: some were written side by side. */
const numberOf = (script: string) => Number.parseInt(script, 10)

export const SCHEMA_VERSION = Math.max(...SCRIPTS.map(numberOf))

/** Brings a database up to this program's schema, under the write lock; a current one is left. */
export async function migrate(
  db: Database,
  options: { path: string; busy_timeout_ms: number; refuseEmpty?: () => void },
): Promise<void> {
  const { busy_timeout_ms, refuseEmpty } = options
  // Even a first look finds the file locked for a moment, while another process opens or closes it.
  const found = await patiently(db, busy_timeout_ms, () => {
    db.exec('PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
    return refuseNewer(db, options.path)
  })
  // Also a current one: a backup is kept in another mode, and may have been put in place by hand.
  await patiently(db, busy_timeout_ms, () => useWal(db, options.path))
  if (found === SCHEMA_VERSION) return
  await beginPatiently(db, busy_timeout_ms)
  try {
    const applied = refuseNewer(db, options.path)
    if (applied === 0) refuseEmpty?.()
    if (applied === 0) begin(db, options.path)
    else applyScripts(db, applied, SCHEMA_VERSION)
    // Scripts change rows too: what they leave is right.
    sumAnew(db)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Applies the scripts behind number `from`, up to number `to`. */
export function applyScripts(db: Database, from: number, to: number): void {
  for (const script of SCRIPTS) {
    const number = numberOf(script)
    if (number > from && number <= to) {
      db.exec(readFileSync(new URL(script, import.meta.url), 'utf8'))
    }
  }
}

function useWal(db: Database, path: string): void {
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
  if (mode === 'wal') return
  throw new Refusal('invalid', `${path} cannot be used in WAL mode, only in ${String(mode)}`, {
    next: 'Put the state on a local disk whose files can be shared between processes.',
  })
}

function begin(db: Database, path: string): void {
  const { hash } = EMPTY_HEAD
  makeTables(db, SCHEMA_VERSION)
  db.prepare(`INSERT INTO head VALUES (1, ?, 0, 0, 0, ?, '', 0, 0, '')`).run(readEpoch(path), hash)
  db.prepare('INSERT INTO checkpoint VALUES (1, 0, ?)').run(hash)
}

/** The schema of a database; one from a newer program is refused rather than misread. */
export function refuseNewer(db: Database, path: string): number {
  const found = Number(db.prepare('PRAGMA user_version').get()?.['user_version'])
  if (found === 0 && db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'head'`).get()) {
    throw new Unreadable('it has tables, but no version')
  }
  return refuseNewerSchema(path, found, SCHEMA_VERSION)
}

/** Whether the schema still is this program's; refuses when a newer program has migrated it. */
export function isCurrent(statements: Statements, path: string): boolean {
  const found = Number(statements.sql('PRAGMA user_version').get()?.['user_version'])
  return refuseNewerSchema(path, found, SCHEMA_VERSION) === SCHEMA_VERSION
}
