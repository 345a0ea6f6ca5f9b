import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { type Retention, retentionOf } from '../core/retention.ts'
import { fileRefusal } from '../machine/errors.ts'
import { FileBackend } from './file/backend.ts'
import { machine } from '../machine/machine.ts'
import { CONFIG_FILE, refuseUnsafeFolder, stateFolder } from '../machine/place.ts'
import { makePrivateFolder, refuseLaxStore } from '../machine/privacy.ts'
import type { Backend } from './port.ts'
import type { Machine } from '../machine/machine.ts'
import { addressOf, isPostgres } from './postgres/address.ts'
import { PostgresBackend } from './postgres/backend.ts'
import { readOutput } from '../machine/run_output.ts'
import { SqliteBackend } from './sqlite/backend.ts'
import { Store } from './writer/store.ts'

const DATABASE = 'leasehold.db'
const BUSY_TIMEOUT_MS = 5_000
export { CONFIG_FILE } from '../machine/place.ts'

/** Which store is meant, before anything is opened. */
export interface Place {
  kind: 'sqlite' | 'file' | 'postgres'
  /** The folder of the state, and of the store unless `LEASEHOLD_STORE` says otherwise. */
  folder: string
  /** The database file, the folder of numbered states, or a server's address without secrets. */
  path: string
  /** PostgreSQL: the address with all that is needed to get in. Shown to nobody. */
  url?: string
  busy_timeout_ms: number
}

export function placeOf(env: NodeJS.ProcessEnv, cwd: string): Place {
  const folder = stateFolder(env, cwd)
  const said = env['LEASEHOLD_STORE'] ?? ''
  const busy_timeout_ms = busyTimeout(env, folder)
  if (said === '') return { kind: 'sqlite', folder, path: join(folder, DATABASE), busy_timeout_ms }
  if (isPostgres(said)) {
    const { shown } = addressOf(said)
    return { kind: 'postgres', folder, path: shown, url: said, busy_timeout_ms }
  }
  const [, kind, rest = ''] = /^(sqlite|file):(?:\/\/)?(.*)$/.exec(said) ?? []
  if (kind === 'file') {
    const path = rest === '' ? folder : resolve(cwd, rest)
    return { kind, folder, path, busy_timeout_ms }
  }
  if (kind === 'sqlite') {
    const path = rest === '' ? join(folder, DATABASE) : resolve(cwd, rest)
    return { kind, folder, path, busy_timeout_ms }
  }
  // Not repeated as a whole: an address may contain a password.
  const begins = /^[a-z][a-z0-9+.-]{0,20}:/i.exec(said)?.[0]
  const why = begins === undefined ? 'it does not say of which kind' : `${begins} is no kind`
  throw new Refusal('invalid', `LEASEHOLD_STORE is not a store: ${why}`, {
    next: 'Use sqlite:PATH, file:FOLDER or postgres://…, or unset it for the default.',
  })
}

/**
 * Every command needs this, and only this, of the configuration: what is wrong with the file is for
 * the daemon and the doctor to say. Undefined where it is no JSON.
 */
function settingsIn(
  folder: string,
): { busy_timeout_ms?: unknown; retention?: unknown } | undefined {
  try {
    return Object(JSON.parse(readFileSync(join(folder, CONFIG_FILE), 'utf8'))) as object
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? {} : undefined
  }
}

function busyTimeout(env: NodeJS.ProcessEnv, folder: string): number {
  const { LEASEHOLD_BUSY_TIMEOUT_MS: said } = env
  if (said !== undefined) return Number(said)
  const busy_timeout_ms = settingsIn(folder)?.busy_timeout_ms
  return Number.isInteger(busy_timeout_ms) ? Number(busy_timeout_ms) : BUSY_TIMEOUT_MS
}

/** What leaves the store by itself, and when. Of a file that cannot be read: nothing ever. */
export function retentionIn(place: Place): Retention {
  const settings = settingsIn(folderOf(place))
  return retentionOf(settings ? settings.retention : null)
}

/** Opens a store without touching it: the first write makes what is missing. */
export function openStore(place: Place, on: Machine = machine): Store {
  const store = new Store(backendOf(place), on)
  store.retention = retentionIn(place)
  store.output = (...asked) => readOutput(folderOf(place), ...asked)
  return store
}

function backendOf(place: Place): Backend {
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
    return new PostgresBackend({ address: addressOf(place.url), busy_timeout_ms, prepare })
  }
  if (place.kind === 'file') return new FileBackend({ dir: path, busy_timeout_ms, prepare })
  return new SqliteBackend({ path, busy_timeout_ms, prepare })
}

/** A database elsewhere (`LEASEHOLD_STORE=sqlite:PATH`) stands in a folder of other things. */
function isOurFolder(place: Place): boolean {
  return place.kind === 'file' || folderOf(place) === place.folder
}

/** Where the state is kept that is no part of the store: who serves it, what runs have said. */
export function folderOf({ kind, path, folder }: Place): string {
  if (kind === 'postgres') return folder
  return kind === 'file' ? path : resolve(path, '..')
}

/** Whether there may be something to look at: of a database server only it can tell. */
export function storeExists({ kind, path }: Place): boolean {
  return kind === 'postgres' || existsSync(path)
}

/** A folder that is ours alone, and a database file that nobody else may read. */
function makePrivate(place: Place): void {
  const { kind, path } = place
  if (kind === 'sqlite' && existsSync(path)) return
  const folder = folderOf(place)
  if (isOurFolder(place)) makePrivateFolder(folder)
  else mkdirSync(folder, { recursive: true, mode: 0o700 })
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
