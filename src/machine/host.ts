import { existsSync, linkSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { uniqueId } from './digest.ts'
import { fileRefusal } from './errors.ts'
import { writePrivate } from './private_file.ts'
import { host } from './process.ts'

const FILE = 'host'

const known = new Map<string, string>()

/**
 * Which host this is, to others that use the same store: a name changes, and two hosts may have the
 * same one. Kept in the state folder, which is one host's own, and called as the host was then.
 */
export function hostIn(folder: string): string {
  const id = known.get(folder) ?? readHost(folder) ?? makeHost(folder)
  known.set(folder, id)
  return id
}

function readHost(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, FILE), 'utf8').trim() || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw fileRefusal(error, folder)
  }
}

/** Of several who make it at once, one does. */
function makeHost(folder: string): string {
  // Where versions before this one had runs, rows know the host by its bare name.
  const id = existsSync(join(folder, 'runs')) ? host : `${host}~${uniqueId().slice(0, 8)}`
  const made = `${FILE}.${uniqueId()}`
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writePrivate(folder, made, id)
    linkSync(join(folder, made), join(folder, FILE))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileRefusal(error, folder)
  } finally {
    rmSync(join(folder, made), { force: true })
  }
  return readHost(folder) ?? id
}
