import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { systemCode } from './errors.ts'
import { gitNow } from './git_quiet.ts'

/** What may stand in a folder that we have not used yet: some people configure first. */
const HARMLESS = new Set(['config.json', 'write.lock', 'sessions'])

const isLax = (path: string) => {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode
  return mode !== undefined && (mode & 0o077) !== 0
}

/** A store that other logins can read or write is refused: secrets and locks are in there. */
export function refuseLaxStore(folder: string, file: string): void {
  if (!existsSync(file)) return
  if (isLax(folder) && isInUse(folder)) throw lax(folder, '700')
  if (file !== folder && isLax(file)) throw lax(file, '600')
}

const isInUse = (folder: string) => readdirSync(folder).some((name) => !HARMLESS.has(name))

/**
 * A folder and those above it, for this login only. One by one: asked for all at once, Node 20
 * tries for ever where the kernel lets nobody make any (`/proc/x`).
 */
export function makeFolders(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (existsSync(folder)) return
    if (systemCode(error) !== 'ENOENT' || existsSync(dirname(folder))) throw error
    makeFolders(dirname(folder))
    makeFolders(folder)
  }
}

/** Makes the folder of a new store, or takes an empty one into use, for this login only. */
export function makePrivateFolder(folder: string): void {
  makeFolders(folder)
  if (isLax(folder)) {
    if (isInUse(folder)) throw lax(folder, '700')
    chmodSync(folder, 0o700)
  }
  refuseTracked(folder)
}

/** Refuses (`forbidden`) a folder whose files git would commit. */
export function refuseTracked(folder: string): void {
  if (!isTracked(folder)) return
  throw new Refusal('forbidden', `git tracks files in ${folder}: the state would be committed`, {
    next: `git rm -r --cached ${folder}, and add it to .gitignore.`,
    details: { folder },
  })
}

/** A configuration may include what never comes to an end, and a disk may be slow. */
const LOOK_MS = 5_000

/** Whether git would commit what is in `folder`. Without git nothing is tracked. */
export function isTracked(folder: string): boolean {
  try {
    const found = gitNow(folder, ['ls-files', '.'], { timeout_ms: LOOK_MS, isList: true })
    return (found ?? '').trim() !== ''
  } catch (error) {
    const why = (error as Error).message
    throw new Refusal('unavailable', `Whether git tracks ${folder} is not known: ${why}`)
  }
}

function lax(path: string, mode: string): Refusal {
  return new Refusal('forbidden', `${path} can be read or written by other logins`, {
    next: `chmod ${mode} ${path}, or use a folder of your own (LEASEHOLD_DIR).`,
    details: { path },
  })
}
