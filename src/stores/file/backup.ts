import { existsSync } from 'node:fs'
import { link, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { makeFolder, syncFolder, writeDurably } from './durable.ts'
import { damaged, refusalFor } from './errors.ts'
import { systemCode } from '../../machine/errors.ts'
import { readNewest } from './folder.ts'
import { render } from './layout.ts'
import { temporaryPath } from './leftovers.ts'

export interface Backup {
  number: number
  position: number
  bytes: number
}

/**
 * Writes the newest state into the new file `to`: one document, as the folder has it.
 * Refuses a damaged store, since that would pass off an older state as the newest, and never
 * overwrites a file (`invalid`).
 */
export async function backupFileStore(dir: string, to: string): Promise<Backup> {
  const { state, damage } = await readNewest(dir).catch((error: unknown) => {
    throw refusalFor(error, dir)
  })
  if (!state || damage !== undefined) throw damaged(dir, damage ?? 'no good state')
  if (state.number === 0) throw new Refusal('not_found', `There is no store in ${dir}`)
  const target = resolve(to)
  const temporary = temporaryPath(dirname(target))
  try {
    if (existsSync(target)) throw taken(to)
    const bytes = render(state)
    await makeFolder(dirname(target))
    await writeDurably(temporary, bytes)
    await link(temporary, target)
    await syncFolder(dirname(target))
    return { number: state.number, position: state.head.position, bytes: bytes.length }
  } catch (error) {
    throw systemCode(error) === 'EEXIST' ? taken(to) : refusalFor(error, dirname(target))
  } finally {
    await rm(temporary, { force: true })
  }
}

function taken(to: string): Refusal {
  return new Refusal('invalid', `${to} exists already`, {
    next: 'Name a new file; --yes writes over this one.',
  })
}
