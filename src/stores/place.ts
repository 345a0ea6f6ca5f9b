import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { CONFIG_FILE, stateFolder } from '../machine/place.ts'
import { addressOf, isPostgres } from './postgres/address.ts'

export const DATABASE = 'leasehold.db'
const BUSY_TIMEOUT_MS = 5_000

/** A moment, as a part of the name of a file. */
export const stampOf = (at: Date) => at.toISOString().replaceAll(/[:.]/g, '-')

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
export function settingsIn(
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

/** Where the state is kept that is no part of the store: who serves it, what runs have said. */
export function folderOf({ kind, path, folder }: Place): string {
  if (kind === 'postgres') return folder
  return kind === 'file' ? path : resolve(path, '..')
}

/** The same before the place is known. Most need only a look: hooks and runners begin with this. */
export function folderIn(env: NodeJS.ProcessEnv, cwd: string): string {
  return env['LEASEHOLD_STORE'] ? folderOf(placeOf(env, cwd)) : stateFolder(env, cwd)
}
