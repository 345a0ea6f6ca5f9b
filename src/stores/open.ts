import { closeSync, constants, existsSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { type Retention, retentionOf } from '../core/retention.ts'
import { fileRefusal } from '../machine/errors.ts'
import { FileBackend } from './file/backend.ts'
import { hostIn } from '../machine/host.ts'
import { type Machine, machine } from '../machine/machine.ts'
import { refuseUnsafeFolder } from '../machine/place.ts'
import { makeFolders, makePrivateFolder, refuseLaxStore } from '../machine/privacy.ts'
import { DATABASE, folderOf, type Place, settingsIn } from './place.ts'
import type { CopyBackend } from './port.ts'
import { addressOf } from './postgres/address.ts'
import { PostgresBackend } from './postgres/backend.ts'
import { SeenHead, witnessOf } from './postgres/head.ts'
import { readOutput } from '../machine/run_output.ts'
import { SqliteBackend } from './sqlite/backend.ts'
import { loadSqlite } from './sqlite/driver.ts'
import { Store } from './writer/store.ts'

export { CONFIG_FILE } from '../machine/place.ts'
export { folderOf, type Place, placeOf } from './place.ts'

/** What leaves the store by itself, and when. Of a file that cannot be read: nothing ever. */
export function retentionIn(place: Place): Retention {
  const settings = settingsIn(folderOf(place))
  return retentionOf(settings ? settings.retention : null)
}

/** Opens a store without touching it: the first write makes what is missing. */
export function openStore(place: Place, on: Machine = machine): Store {
  const store = new Store(backendOf(place), on)
  store.retention = retentionIn(place)
  store.host = () => hostIn(folderOf(place))
  store.output = (...asked) => readOutput(folderOf(place), ...asked)
  return store
}

/** `isPatient`: its transactions may wait for the other end of a copy. */
export function backendOf(place: Place, isPatient = false): CopyBackend {
  const { path, busy_timeout_ms } = place
  const folder = folderOf(place)
  try {
    refuseUnsafeFolder(folder)
    refuseMixture(place, folder)
    if (isOurFolder(place)) refuseLaxStore(folder, place.url === undefined ? path : folder)
  } catch (error) {
    throw fileRefusal(error, folder)
  }
  const prepare = () => makePrivate(place)
  if (place.url !== undefined) {
    const address = addressOf(place.url)
    const seen = new SeenHead(witnessOf(folder, address))
    return new PostgresBackend({ address, busy_timeout_ms, prepare, seen, isPatient })
  }
  if (place.kind === 'file') return new FileBackend({ dir: path, busy_timeout_ms, prepare })
  return new SqliteBackend({ path, busy_timeout_ms, prepare })
}

/** A database elsewhere (`LEASEHOLD_STORE=sqlite:PATH`) stands in a folder of other things. */
function isOurFolder(place: Place): boolean {
  return place.kind === 'file' || folderOf(place) === place.folder
}

/** Whether there may be something to look at: of a database server only it can tell. */
export function storeExists({ kind, path }: Place): boolean {
  return kind === 'postgres' || existsSync(path)
}

/** A folder that is ours alone, and a database file that nobody else may read. */
function makePrivate(place: Place): void {
  const { kind, path } = place
  if (kind === 'sqlite' && existsSync(path)) return
  // Where SQLite cannot be had, no empty file shall stand in the way of another kind of store.
  if (kind === 'sqlite') loadSqlite()
  const folder = folderOf(place)
  if (isOurFolder(place)) makePrivateFolder(folder)
  else makeFolders(folder)
  if (kind !== 'sqlite') return
  const { O_CREAT, O_RDWR, O_NOFOLLOW } = constants
  closeSync(openSync(path, O_CREAT | O_RDWR | O_NOFOLLOW, 0o600))
}

/** Two stores in one folder would each hand out the same lock. */
function refuseMixture(place: Place, folder: string): void {
  if (place.kind === 'postgres' || !existsSync(folder)) return
  const other =
    place.kind === 'file'
      ? existsSync(join(folder, DATABASE)) && DATABASE
      : readdirSync(folder).find((name) => /^state\.\d+\.json$/.test(name))
  if (!other) return
  throw new Refusal('invalid', `${folder} already holds another store (${other})`, {
    next:
      place.kind === 'file'
        ? 'Unset LEASEHOLD_STORE to use the database, or name another folder: file:FOLDER.'
        : `Set LEASEHOLD_STORE=file: to use the files, or point LEASEHOLD_DIR elsewhere.`,
    details: { folder, found: other },
  })
}
