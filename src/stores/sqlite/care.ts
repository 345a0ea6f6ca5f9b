import type { Lease } from '../../core/schema/lock.ts'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { DamageMark, refuseMarked } from '../damage.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { leftFor, RESTORE } from '../copy/moved.ts'
import { stampOf } from '../place.ts'
import type { CheckReport, Head, RestoreReport } from '../port.ts'
import { refuseOver, settleRestored } from '../writer/restored.ts'
import { copyDatabase, openDatabase } from './driver.ts'
import { SqliteBackend } from './backend.ts'
import { CHECK_PATIENCE_MS, checkSqlite, inspectSqlite, isProved } from './check.ts'
import { refusalFor } from './errors.ts'
import { migrate } from './migrate.ts'
import { sumHeadAnew } from './sums.ts'

/**
 * A consistent copy while others write, checked before it gets its name. A copy that is not sound
 * is refused (`damaged`): it could never be restored. Nothing is left behind by one that failed.
 */
export async function backupSqlite(path: string, to: string): Promise<CheckReport> {
  if (existsSync(to)) {
    throw new Refusal('conflict', `${to} exists already`, {
      next: 'Name a new file; --yes writes over this one.',
    })
  }
  const folder = dirname(to)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  sweepPartials(folder)
  const partial = `${to}.${process.pid}.partial`
  try {
    await copyTo(path, partial, 'DELETE')
    const { isDamaged, ...report } = inspectSqlite(partial)
    if (isDamaged) isProved(path, new DamageMark(path))
    if (!report.ok) throw unsound(path, report)
    renameSync(partial, to)
    return report
  } catch (error) {
    throw refusalFor(error, path)
  } finally {
    remove(partial)
  }
}

function unsound(path: string, { problems }: CheckReport): Refusal {
  return new Refusal('damaged', `The store ${path} is not sound: ${problems.join('; ')}`, {
    next: 'No backup was made: it could not be restored. Restore an older one, or copy the file.',
    details: { problems },
  })
}

/** What a backup that was killed has left; one that is being made was written to just now. */
function sweepPartials(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!/\.partial(?:-journal|-wal|-shm)?$/.test(name)) continue
    const path = join(folder, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat && Date.now() - stat.mtimeMs > PARTIAL_OLD_MS) rmSync(path, { force: true })
  }
}

const PARTIAL_OLD_MS = 3600_000

/**
 * Copies a database into a new file that only this login may read. A backup is one file, without
 * the side files of WAL that reading it would leave beside it.
 */
async function copyTo(from: string, to: string, mode: 'WAL' | 'DELETE'): Promise<void> {
  remove(to)
  closeSync(openSync(to, 'wx', 0o600))
  const source = openDatabase(from, { readOnly: true, timeout_ms: CHECK_PATIENCE_MS })
  await copyDatabase(source, to).finally(() => source.close())
  const copy = openDatabase(to, { readOnly: false })
  copy.exec(mode === 'WAL' ? 'PRAGMA journal_mode = WAL' : 'PRAGMA journal_mode = DELETE')
  copy.close()
}

/**
 * Puts a backup in the place of the store, which is kept beside it. Refuses with `held` where a
 * command runs under a lease that the backup knows nothing of; every lease of the backup ends but
 * those whose command runs. The epoch is raised above the backup's, the replaced store's and any
 * restore before, so that no fence ever given is accepted again for what has ended. Processes that
 * have the store open see the restored one with their next step.
 */
export async function restoreSqlite(path: string, from: string): Promise<RestoreReport> {
  const checked = inspectSqlite(from)
  refuseUnsound(from, checked)
  const present = existsSync(path) ? inspectSqlite(path) : undefined
  const known = [checked.head, present?.head].map((head) => head?.epoch ?? 0)
  const epoch = Math.max(...known, readEpoch(path)) + 1
  const prepared = `${path}.restoring`
  const former = existsSync(path) ? `${path}.former-${stampOf(new Date())}` : undefined
  let isDone = false
  try {
    await copyTo(from, prepared, 'DELETE')
    await bringUpToDate(prepared)
    refuseUnsound(from, inspectSqlite(prepared))
    const kept = await settle(prepared, epoch)
    if (former !== undefined) await keepFormer(path, former, present)
    if (former !== undefined && present?.head) await refuseAtWork(former, kept)
    writeEpoch(path, epoch)
    await replace(path, prepared, present)
    isDone = true
    new DamageMark(path).remove()
  } catch (error) {
    throw refusalFor(error, path)
  } finally {
    remove(prepared)
    if (former !== undefined && !isDone) {
      if (present?.ok && present.head) setBoot(path, present.head.boot, leftFor(RESTORE))
      remove(former)
    }
  }
  return { ...checkSqlite(path), kept: former === undefined ? [] : [former] }
}

/**
 * What is there stays beside it under a name of its own. From here on nobody commits to a sound
 * store: what was answered up to the very end is in the copy, and no command begins unseen.
 */
async function keepFormer(path: string, former: string, present?: CheckReport): Promise<void> {
  if (!present?.ok || !present.head) {
    for (const side of ['', '-wal']) {
      if (existsSync(path + side)) copyFileSync(path + side, former + side)
    }
    return
  }
  const { boot } = present.head
  setBoot(path, leftFor(RESTORE))
  await copyTo(path, former, 'DELETE')
  setBoot(former, boot)
}

/** Everybody who writes looks at the boot first, under the lock. */
function setBoot(path: string, boot: string, instead?: string): void {
  const db = openDatabase(path, { readOnly: false, timeout_ms: CHECK_PATIENCE_MS })
  try {
    const text = 'UPDATE head SET boot = ? WHERE id = 1 AND boot = coalesce(?, boot)'
    db.prepare(text).run(boot, instead ?? null)
  } finally {
    db.close()
  }
}

/** `held`; what cannot be read any more says nothing of who is at work. */
async function refuseAtWork(path: string, kept: readonly Lease[]): Promise<void> {
  const backend = new SqliteBackend({ path, busy_timeout_ms: 0, isWitnessed: false })
  await refuseOver(backend, kept).catch((error: unknown) => {
    if (isRefusal(error, 'held')) throw error
  })
}

function refuseUnsound(backup: string, { ok, problems }: CheckReport): void {
  if (ok) return
  throw new Refusal('damaged', `The backup ${backup} is not sound: ${problems.join('; ')}`, {
    next: 'Use another backup. The store was left as it is.',
  })
}

/** A backup may be of an older program. */
async function bringUpToDate(path: string): Promise<void> {
  const db = openDatabase(path, { readOnly: false })
  await migrate(db, { path, busy_timeout_ms: CHECK_PATIENCE_MS }).finally(() => db.close())
}

/** The copy is made ready under another name: whoever looks sees the old store or the new one. */
async function settle(path: string, epoch: number): Promise<Lease[]> {
  const db = openDatabase(path, { readOnly: false, timeout_ms: CHECK_PATIENCE_MS })
  db.prepare(`UPDATE head SET epoch = ?, fences = 0, boot = '' WHERE id = 1`).run(epoch)
  sumHeadAnew(db)
  db.close()
  const backend = new SqliteBackend({ path, busy_timeout_ms: 0, isWitnessed: false })
  return settleRestored(backend, epoch)
}

/** Goes on with a store that was left, as a restore of itself would. */
export async function reviveSqlite(path: string, head: Head): Promise<void> {
  const epoch = Math.max(head.epoch, readEpoch(path)) + 1
  try {
    writeEpoch(path, epoch)
    await settle(path, epoch)
  } catch (error) {
    throw refusalFor(error, path)
  }
}

async function replace(
  path: string,
  prepared: string,
  present: CheckReport | undefined,
): Promise<void> {
  if (present?.head) {
    // Through SQLite, so that others who have the store open notice.
    const db = openDatabase(prepared, { readOnly: true })
    await copyDatabase(db, path).finally(() => db.close())
    return
  }
  // A file of its own: the prepared one may still be open here until its statements are collected.
  const fresh = `${path}.fresh`
  await copyTo(prepared, fresh, 'WAL')
  for (const side of ['-wal', '-shm']) rmSync(path + side, { force: true })
  // In one step: those who have the store open would take a moment without it for its end.
  renameSync(fresh, path)
}

function remove(path: string): void {
  for (const side of ['', '-wal', '-shm', '-journal']) rmSync(path + side, { force: true })
}

/** Writes the database anew without its free pages. In a file that is there already: see R36. */
export function compactSqlite(path: string, busy_timeout_ms: number): void {
  refuseMarked(new DamageMark(path).read())
  const db = openDatabase(path, { readOnly: false, timeout_ms: busy_timeout_ms })
  try {
    db.exec('PRAGMA synchronous = FULL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    throw refusalFor(error, path)
  } finally {
    db.close()
  }
}
