import { randomBytes } from 'node:crypto'
import { constants, linkSync, renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { CommitUnknown } from '../port.ts'
import { refuseOverRows, settledCommit } from '../writer/restored.ts'
import { nextState, type State } from './document.ts'
import { makeFolder, syncFolder } from './durable.ts'
import { refusalFor } from './errors.ts'
import { systemCode } from '../../machine/errors.ts'
import { epochKey, list, type Newest, readNewest, readState, statePath } from './folder.ts'
import { FileDamage, parse } from './layout.ts'
import { publicationId, publish } from './publish.ts'

/**
 * A backup replaces whatever is there, so it leaves this many numbers out: a writer that slept
 * through the restore would else get a number above the restored state, and so replace it.
 */
const NUMBERS_SKIPPED = 1_000

export interface Restored {
  number: number
  epoch: number
  /** Files that have what was there before, damaged states too: people may want to look. */
  kept: string[]
}

interface Source {
  state: State
  /** Whether it takes the place of what is there, rather than goes on from it. */
  replaces: boolean
}

/**
 * Ends damage: publishes the last good state again, with a higher epoch, so that no fence of the
 * damaged states is ever given a second time. Done even if the newest state looks good: that
 * states were deleted is known to those who saw them only, and an epoch skipped does no harm.
 * Refuses (`damaged`) when no good state is left.
 */
export async function restoreLastGood(dir: string): Promise<Restored> {
  // The very next number: if a writer takes that first, it is decided again, and nothing is lost.
  return raising(dir, 1, (newest) => {
    if (newest.state) return { state: newest.state, replaces: false }
    throw new Refusal('damaged', `No good state is left in ${dir}: ${newest.damage}`, {
      next: 'Restore a backup: leasehold db restore BACKUP',
    })
  })
}

/**
 * Puts the backup `from` in place of whatever the folder holds, with an epoch above that of the
 * backup, of the folder, and of any restore before. Refuses with `held` where the command of a
 * lease runs that the backup knows nothing of.
 */
export async function restoreFileStore(dir: string, from: string): Promise<Restored> {
  const backup = await readBackup(from)
  return raising(dir, NUMBERS_SKIPPED, () => ({ state: backup, replaces: true }))
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
    if (systemCode(error) === 'ENOENT') throw new Refusal('not_found', `There is no backup ${from}`)
    if (!(error instanceof FileDamage)) throw refusalFor(error, from)
    throw new Refusal('damaged', `The backup ${from} is damaged: ${error.message}`, {
      next: 'Take another backup; nothing was changed.',
    })
  }
}

type Choose = (newest: Newest) => Source

async function raising(dir: string, step: number, choose: Choose): Promise<Restored> {
  try {
    return await raise(dir, step, choose)
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
async function raise(dir: string, step: number, choose: Choose): Promise<Restored> {
  for (;;) {
    const newest = await readNewest(dir)
    const { state: source, replaces } = choose(newest)
    const epoch = Math.max(epochIn(newest), source.head.epoch, readEpoch(epochKey(dir))) + 1
    await makeFolder(dir)
    // First the side file, durably: a crash in between skips an epoch, and repeats none.
    writeEpoch(epochKey(dir), epoch)
    await syncFolder(dir)
    const number = Math.max(newest.highest, source.number) + step
    const { commit, kept } = settledCommit(source.tables, source.head, epoch)
    const former = replaces && newest.highest > 0 ? newest.state : undefined
    if (former) refuseOverRows(former.tables, former.head, kept)
    const state = nextState(source, commit, number, publicationId(number))
    if ((await publish(dir, state)) === 'again') continue
    // Only now: had the damaged state gone first, writers would go on from the one before it.
    const damaged = await keepDamaged(dir, number)
    return { number, epoch, kept: [...(former ? await keepFormer(dir, number) : []), ...damaged] }
  }
}

const epochIn = ({ state }: Newest): number => state?.head.epoch ?? 0

/** The last good state below the one that took its place: somebody may have been faster than us. */
async function keepFormer(dir: string, below: number): Promise<string[]> {
  for (const number of list(dir).numbers) {
    if (number >= below || !(await readState(dir, number))?.state) continue
    const path = join(dir, `former.${number}.${randomBytes(4).toString('hex')}.json`)
    linkSync(statePath(dir, number), path)
    await syncFolder(dir)
    return [path]
  }
  return []
}

async function keepDamaged(dir: string, below: number): Promise<string[]> {
  const kept: string[] = []
  for (const number of list(dir).numbers) {
    if (number >= below || !(await readState(dir, number))?.fault) continue
    const name = `damaged.${number}.${randomBytes(4).toString('hex')}.json`
    renameSync(statePath(dir, number), join(dir, name))
    kept.push(join(dir, name))
  }
  await syncFolder(dir)
  return kept
}
