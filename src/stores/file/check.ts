import type { Event } from '../../core/event.ts'
import { chainFault } from '../writer/chain.ts'
import { readEpoch } from '../epoch.ts'
import { FENCES_PER_EPOCH } from '../writer/layer.ts'
import type { Head } from '../port.ts'
import { Witness } from '../witness.ts'
import { emptyState, type State } from './document.ts'
import { refusalFor } from './errors.ts'
import { epochKey, list, readNewest, readState } from './folder.ts'

export interface FileReport {
  ok: boolean
  problems: string[]
  /** How many events are kept, and the head they lead to: of the last good state. */
  events: number
  head: Head
}

/** Reads every state in the folder anew, and follows the newest one's chain. Changes nothing. */
export async function checkFileStore(dir: string): Promise<FileReport> {
  try {
    const problems: string[] = []
    for (const number of list(dir).numbers) {
      const fault = (await readState(dir, number))?.fault
      if (fault !== undefined) problems.push(`state.${number}.json: ${fault}`)
    }
    const witness = new Witness(epochKey(dir))
    const kept = witness.read()
    const state = (await readNewest(dir)).state ?? emptyState(readEpoch(epochKey(dir)))
    problems.push(...faultsIn(state))
    const lost = witness.faultOf(state.head, kept)
    if (lost !== undefined) problems.push(lost)
    const { events, head } = state
    return { ok: problems.length === 0, problems, events: events.length, head }
  } catch (error) {
    throw refusalFor(error, dir)
  }
}

function faultsIn({ number, id, lineage, head, checkpoint, events, tables }: State): string[] {
  const found: string[] = []
  const broken = chainFault(events, checkpoint, head)
  if (broken !== undefined) found.push(broken)
  if (number > 0 && lineage.at(-1) !== id) found.push(`the lineage does not end with ${id}`)
  const highest = head.epoch * FENCES_PER_EPOCH + head.fences
  for (const lease of tables.rows.lease.values()) {
    if (lease.fence <= highest) continue
    found.push(`${lease.name} has fence ${lease.fence}, but only ${highest} was given`)
  }
  return [...found, ...fenceFaults(events)]
}

/** Grants in the order of the chain: each has a higher fence than all before it. */
function fenceFaults(events: Event[]): string[] {
  const found: string[] = []
  let last = 0
  for (const { type, position, data } of events) {
    if (type !== 'lease.granted') continue
    const { fence } = data
    if (fence <= last) found.push(`event ${position} grants fence ${fence} after ${last}`)
    last = fence
  }
  return found
}
