import { randomBytes } from 'node:crypto'
import { type BigIntStats, rmSync, statSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { planted } from '../../core/planted.ts'
import { CommitUnknown } from '../port.ts'
import type { State } from './document.ts'
import { makeFolder, syncFolder, writeDurably } from './durable.ts'
import { refusalFor } from './errors.ts'
import { systemCode } from '../../machine/errors.ts'
import { identityOf, list, readNewest, statePath } from './folder.ts'
import { render } from './layout.ts'
import { prune, temporaryPath } from './leftovers.ts'

/** Where a test may stop a writer: just before its state is linked, and before it is read back. */
export type Step = 'link' | 'read_back'
export type PublishPause = (step: Step) => Promise<void> | void

export function publicationId(number: number): string {
  return `${number}.${randomBytes(8).toString('hex')}`
}

/** `published` with the identity of the file, or `again`: another was first, nothing is changed. */
export type Publication = { published: string } | 'again'

/**
 * Publishes `state` under its number, durably, and proves that it became part of the store.
 *
 * link(2) lets one writer have a number while that exists. But a writer may sleep for so long that
 * the number it wants was used, and pruned: its link then succeeds although the store has gone on
 * without it. So nothing is acknowledged before the highest state was seen to descend from ours.
 *
 * Refuses (`unavailable`) when nothing was published; `CommitUnknown` when that cannot be told.
 */
export async function publish(
  dir: string,
  state: State,
  pause?: PublishPause,
): Promise<Publication> {
  const temporary = temporaryPath(dir)
  try {
    const stat = await writeTemporary(dir, temporary, render(state))
    // A writer that slept until here would link a stray state. Only here is that sure to be seen.
    if ((list(dir).numbers[0] ?? 0) >= state.number) return 'again'
    await pause?.('link')
    if (!(await linked(temporary, statePath(dir, state.number)))) return 'again'
    return await settled(dir, state, stat, pause)
  } catch (error) {
    throw error instanceof CommitUnknown ? error : refusalFor(error, dir)
  } finally {
    // Not before the read-back: while this name exists, no other file can have our inode.
    remove(temporary)
  }
}

async function writeTemporary(dir: string, path: string, bytes: Buffer): Promise<BigIntStats> {
  await makeFolder(dir)
  return writeDurably(path, bytes)
}

/** False: the number is taken, or somebody took our temporary file for a leftover. */
async function linked(temporary: string, path: string): Promise<boolean> {
  try {
    await link(temporary, path)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST' || systemCode(error) === 'ENOENT') return false
    throw error
  }
}

/** From the link on others may build on our state: an error can no longer mean "no". */
async function settled(
  dir: string,
  state: State,
  stat: BigIntStats,
  pause?: PublishPause,
): Promise<Publication> {
  try {
    await syncFolder(dir)
    await pause?.('read_back')
    if (!(await isPartOfStore(dir, state, stat.ino)) && !planted('S4')) return 'again'
    prune(dir, list(dir))
    return { published: identityOf(stat) }
  } catch (error) {
    if (error instanceof CommitUnknown) throw error
    throw new CommitUnknown(refusalFor(error, dir).message)
  }
}

async function isPartOfStore(dir: string, state: State, ino: bigint): Promise<boolean> {
  const { numbers } = list(dir)
  if (numbers[0] === state.number && inodeAt(dir, state.number) === ino) return true
  const newest = await readNewest(dir)
  if (!newest.state || newest.damage !== undefined) {
    throw new CommitUnknown(`a later state is damaged: ${newest.damage}`)
  }
  const { lineage } = newest.state
  if (lineage.includes(state.id)) return true
  if (numberOf(lineage[0]!) > state.number) {
    throw new CommitUnknown(`more than ${lineage.length} states were published meanwhile`)
  }
  // Ours is a stray under an old number. If it stayed, damage to all newer ones would revive it.
  if (inodeAt(dir, state.number) === ino) remove(statePath(dir, state.number))
  return false
}

/** What stays behind is pruned later; it must not turn a known outcome into an error. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Pruned with the leftovers.
  }
}

function inodeAt(dir: string, number: number): bigint | undefined {
  return statSync(statePath(dir, number), { bigint: true, throwIfNoEntry: false })?.ino
}

function numberOf(id: string): number {
  return Number(id.split('.')[0])
}
