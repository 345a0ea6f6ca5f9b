import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { backupFileStore } from './file/backup.ts'
import { checkFileStore } from './file/check.ts'
import { restoreFileStore, restoreLastGood } from './file/restore.ts'
import type { Place } from './open.ts'
import type { Head } from './port.ts'
import { backupSqlite, checkSqlite, restoreSqlite } from './sqlite/care.ts'
import { type Keep, pruneSqlite } from './sqlite/prune.ts'

/** What `db check` found. */
export interface Report {
  ok: boolean
  problems: string[]
  events: number
  head: Head | undefined
}

/** Looking after a store, whichever kind it is. */
export async function checkStore({ kind, path }: Place): Promise<Report> {
  return kind === 'sqlite' ? checkSqlite(path) : checkFileStore(path)
}

export async function backupStore(place: Place, to: string | undefined, at: Date) {
  if (!existsSync(place.path)) {
    throw new Refusal('not_found', `There is no store at ${place.path} yet`, {
      next: 'Nothing has been written, so there is nothing to back up.',
    })
  }
  const stamp = at.toISOString().replaceAll(/[:.]/g, '-')
  const ending = place.kind === 'sqlite' ? 'db' : 'json'
  const file = to ?? join(place.folder, 'backups', `${stamp}.${ending}`)
  if (place.kind === 'sqlite') await backupSqlite(place.path, file)
  else await backupFileStore(place.path, file)
  return { backup: file, ...(await checkStore({ ...place })) }
}

/** Forgets old events; a file store does so by itself, with every commit. */
export async function pruneStore(place: Place, keep: Keep): Promise<number> {
  if (place.kind === 'file' || !existsSync(place.path)) return 0
  return pruneSqlite(place.path, keep, place.busy_timeout_ms)
}

export async function restoreStore(place: Place, from: string): Promise<Report> {
  if (!existsSync(from)) {
    throw new Refusal('not_found', `There is no backup at ${from}`, {
      next: 'Backups are made by: leasehold db backup',
    })
  }
  if (place.kind === 'sqlite') await restoreSqlite(place.path, from)
  else await restoreFileStore(place.path, from)
  return checkStore(place)
}

export async function restoreLastGoodState(place: Place): Promise<Report> {
  if (place.kind === 'sqlite') {
    throw new Refusal('invalid', '--last-good is for the file store', {
      next: 'A database is restored from a backup: leasehold db restore BACKUP',
    })
  }
  await restoreLastGood(place.path)
  return checkStore(place)
}
