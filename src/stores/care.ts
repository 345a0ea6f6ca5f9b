import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { argument } from '../core/quote.ts'
import { Refusal } from '../core/refusal.ts'
import { backupFileStore } from './file/backup.ts'
import { DamageMark } from './damage.ts'
import { checkFileStore } from './file/check.ts'
import { readNewest } from './file/folder.ts'
import { restoreFileStore, restoreLastGood } from './file/restore.ts'
import { movedTo } from './copy/moved.ts'
import { openStore, type Place, storeExists } from './open.ts'
import { stampOf } from './place.ts'
import type { CheckReport, RestoreReport, Sizes } from './port.ts'
import { forgetOld, type Forgotten } from './writer/prune.ts'
import { checkPostgres, raisePostgresEpoch } from './postgres/care.ts'
import { backupSqlite, compactSqlite, restoreSqlite, reviveSqlite } from './sqlite/care.ts'
import { checkSqlite } from './sqlite/check.ts'
import { Witness } from './witness.ts'

/** Whether nothing was ever committed here, which is not the same as that nothing is here. */
export function isUnused(place: Place): boolean {
  if (storeExists(place)) return false
  return place.kind !== 'sqlite' || new Witness(place.path).read().committed === undefined
}

/** Looking after a store, whichever kind it is. */
export async function checkStore(place: Place): Promise<CheckReport> {
  const { kind, path } = place
  if (kind === 'postgres') return checkPostgres(place)
  return kind === 'sqlite' ? checkSqlite(path) : checkFileStore(path)
}

/** What was found wrong with a store, as far as that can be told without a check. */
export async function damageOf({ kind, path }: Place): Promise<string | undefined> {
  if (kind === 'sqlite') return new DamageMark(path).read()?.message
  if (kind === 'postgres') return undefined
  const { damage } = await readNewest(path)
  return damage === undefined ? undefined : `The store ${path} is damaged: ${damage}`
}

export async function backupStore(place: Place, to: string | undefined, at: Date) {
  if (place.kind === 'postgres') throw useTheServers('pg_dump --format=custom', 'db backup')
  if (!existsSync(place.path)) {
    throw new Refusal('not_found', `There is no store at ${place.path} yet`, {
      next: 'Nothing has been written, so there is nothing to back up.',
    })
  }
  if (to !== undefined && !existsSync(dirname(resolve(to)))) {
    const folder = dirname(resolve(to))
    throw new Refusal('not_found', `There is no folder ${folder} for the backup`, {
      next: `Make it, if it is meant: mkdir -p ${argument(folder)}`,
    })
  }
  const ending = place.kind === 'sqlite' ? 'db' : 'json'
  const file = to ?? join(place.folder, 'backups', `${stampOf(at)}.${ending}`)
  if (place.kind === 'sqlite') await backupSqlite(place.path, file)
  else await backupFileStore(place.path, file)
  return { backup: file, ...(await checkStore({ ...place })) }
}

export interface StoreSizes extends Sizes {
  to_forget: Forgotten
}

/** How large the store is, and what would leave it now. */
export async function sizeStore(place: Place): Promise<StoreSizes> {
  const store = openStore(place)
  try {
    const { retention } = store
    const to_forget = await forgetOld(store, { retention, dry_run: true })
    return { ...(await store.counter.sizes()), to_forget }
  } finally {
    await store.close()
  }
}

/** Gives back to the disk what a database has free; others wait meanwhile. */
export function compactStore(place: Place): void {
  if (place.kind !== 'sqlite') {
    throw new Refusal('invalid', '--compact is for SQLite', {
      next: 'PostgreSQL has autovacuum, and VACUUM FULL; a file store is written anew each time.',
    })
  }
  compactSqlite(place.path, place.busy_timeout_ms)
}

/**
 * Says that a PostgreSQL store was put back to an earlier state by other means: every lease ends,
 * and no fence that was given since is given again.
 */
export async function raiseEpoch(place: Place): Promise<CheckReport> {
  if (place.kind !== 'postgres') {
    throw new Refusal('invalid', '--raise-epoch is for PostgreSQL', {
      next: 'Elsewhere every restore raises it: leasehold db restore BACKUP',
    })
  }
  await raisePostgresEpoch(place)
  return checkStore(place)
}

/**
 * Takes a store back into use that was copied elsewhere. What was done on the copy is not known
 * here: every lease ends, and no fence of before is given again.
 */
export async function takeBack(place: Place): Promise<CheckReport> {
  const store = openStore(place)
  const head = await store.head().finally(() => store.close())
  if (movedTo(head) === '') {
    throw new Refusal('invalid', `${place.path} is in use: it was not copied elsewhere`, {
      next: 'There is nothing to take back.',
    })
  }
  if (place.kind === 'postgres') await raisePostgresEpoch(place)
  else if (place.kind === 'file') await restoreLastGood(place.path)
  else await reviveSqlite(place.path, head)
  return checkStore(place)
}

/** A server has its own tools for this, which also know of its roles, replicas and archives. */
function useTheServers(tool: string, command: string): Refusal {
  return new Refusal('invalid', `${command} is not for PostgreSQL, which has its own`, {
    next: `Use ${tool}. After a pg_restore: leasehold db restore --raise-epoch`,
  })
}

/** Refuses what could not be restored here: before anybody is asked. */
export function refuseRestore(place: Place, from: string): void {
  if (place.kind === 'postgres') throw useTheServers('pg_restore', 'db restore BACKUP')
  if (!existsSync(from)) {
    throw new Refusal('not_found', `There is no backup at ${from}`, {
      next: 'Backups are made by: leasehold db backup',
    })
  }
}

export async function restoreStore(place: Place, from: string): Promise<RestoreReport> {
  refuseRestore(place, from)
  if (place.kind === 'sqlite') return restoreSqlite(place.path, from)
  const { kept } = await restoreFileStore(place.path, from)
  return { ...(await checkStore(place)), kept }
}

export async function restoreLastGoodState(place: Place): Promise<RestoreReport> {
  if (place.kind !== 'file') {
    throw new Refusal('invalid', '--last-good is for the file store', {
      next: 'A database is restored from a backup: leasehold db restore BACKUP',
    })
  }
  const { kept } = await restoreLastGood(place.path)
  return { ...(await checkStore(place)), kept }
}
