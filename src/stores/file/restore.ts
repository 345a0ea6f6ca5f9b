import { randomBytes } from 'node:crypto'
import { constants, existsSync, renameSync } from 'node:fs'
import { link, open, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { CommitUnknown } from '../port.ts'
import { Damage, nextState, parse, render, type State } from './document.ts'
import { codeOf, damaged, refusalFor } from './errors.ts'
import { epochKey, list, type Newest, readNewest, readState, statePath } from './folder.ts'
import { temporaryPath } from './leftovers.ts'
import { makeFolder, publicationId, publish, syncFolder, writeDurably } from './publish.ts'

/**
 * A restore leaves this many numbers out. A writer that slept through it, or states that somebody
 * deleted, would else get a number above the restored state, and so replace it.
 */
const NUMBERS_SKIPPED = 1_000

export interface Restored {
  /** False when the newest state was good, and nothing was done. */
  restored: boolean
  number: number
  epoch: number
  /** Names that damaged states have now. They are kept: people may want to look. */
  kept: string[]
}

/**
 * Ends damage: publishes the last good state again, with a higher epoch, so that no fence of the
 * damaged states is ever given a second time. Refuses (`damaged`) when no good state is left.
 */
export async function restoreLastGood(dir: string): Promise<Restored> {
  return raising(dir, (newest) => {
    if (newest.damage === undefined) return undefined
    if (newest.state) return newest.state
    throw new Refusal('damaged', `No good state is left in ${dir}: ${newest.damage}`, {
      next: 'Restore a backup: leasehold db restore BACKUP',
    })
  })
}

/**
 * Puts the backup `from` in place of whatever the folder holds, with an epoch above that of the
 * backup, of the folder, and of any restore before.
 */
export async function restoreFileStore(dir: string, from: string): Promise<Restored> {
  const backup = await readBackup(from)
  return raising(dir, () => backup)
}

async function readBackup(from: string): Promise<State> {
  try {
    const file = await open(from, constants.O_RDONLY)
    try {
      return parse(await file.readFile())
    } finally {
      await file.close()
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') throw new Refusal('not_found', `There is no backup ${from}`)
    if (!(error instanceof Damage)) throw refusalFor(error, from)
    throw new Refusal('damaged', `The backup ${from} is damaged: ${error.message}`, {
      next: 'Take another backup; nothing was changed.',
    })
  }
}

type Choose = (newest: Newest) => State | undefined

async function raising(dir: string, choose: Choose): Promise<Restored> {
  try {
    return await raise(dir, choose)
  } catch (error) {
    throw refusalFor(error instanceof CommitUnknown ? unknown(error) : error, dir)
  }
}

function unknown({ message }: CommitUnknown): Refusal {
  return new Refusal('unavailable', `Cannot tell whether the restore took effect: ${message}`, {
    next: 'leasehold db check, then restore again if need be; that does no harm.',
  })
}

/** Publishes what `choose` takes, above all that is there; again if somebody else was faster. */
async function raise(dir: string, choose: Choose): Promise<Restored> {
  for (;;) {
    const newest = await readNewest(dir)
    const source = choose(newest)
    if (!source) {
      const { number = 0, head } = newest.state ?? {}
      return { restored: false, number, epoch: head?.epoch ?? 0, kept: [] }
    }
    const epoch = Math.max(epochIn(newest), source.head.epoch, readEpoch(epochKey(dir))) + 1
    await makeFolder(dir)
    // First the side file, durably: a crash in between skips an epoch, and repeats none.
    writeEpoch(epochKey(dir), epoch)
    await syncFolder(dir)
    const number = Math.max(newest.highest, source.number) + NUMBERS_SKIPPED
    const head = { ...source.head, epoch, fences: 0 }
    const state = nextState(
      source,
      { changes: {}, events: [], head },
      number,
      publicationId(number),
    )
    if ((await publish(dir, state)) === 'again') continue
    // Only now: had the damaged state gone first, writers would go on from the one before it.
    return { restored: true, number, epoch, kept: await keepDamaged(dir, number) }
  }
}

function epochIn({ state }: Newest): number {
  return state?.head.epoch ?? 0
}

async function keepDamaged(dir: string, below: number): Promise<string[]> {
  const kept: string[] = []
  for (const number of list(dir).numbers) {
    if (number >= below || !(await readState(dir, number))?.fault) continue
    const name = `damaged.${number}.${randomBytes(4).toString('hex')}.json`
    renameSync(statePath(dir, number), join(dir, name))
    kept.push(name)
  }
  await syncFolder(dir)
  return kept
}

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
  const { state, damage } = await readNewest(dir)
  if (!state || damage !== undefined) throw damaged(dir, damage ?? 'no good state')
  if (state.number === 0) throw new Refusal('not_found', `There is no store in ${dir}`)
  const target = resolve(to)
  const temporary = temporaryPath(dirname(target))
  try {
    if (existsSync(target)) throw taken(to)
    const bytes = render(state)
    await writeDurably(temporary, bytes)
    await link(temporary, target)
    await syncFolder(dirname(target))
    return { number: state.number, position: state.head.position, bytes: bytes.length }
  } catch (error) {
    throw codeOf(error) === 'EEXIST' ? taken(to) : refusalFor(error, dirname(target))
  } finally {
    await rm(temporary, { force: true })
  }
}

function taken(to: string): Refusal {
  return new Refusal('invalid', `${to} exists already`, { next: 'Give the backup a new name.' })
}
