import { readEpoch } from '../epoch.ts'
import { faultsIn } from '../invariants.ts'
import type { CheckReport, Head } from '../port.ts'
import { Witness } from '../witness.ts'
import { contentsOf, emptyState } from './document.ts'
import { refusalFor } from './errors.ts'
import { epochKey, list, readNewest, readState } from './folder.ts'

/** Reads every state in the folder anew, and follows the newest one's chain. Changes nothing. */
export async function checkFileStore(dir: string): Promise<CheckReport & { head: Head }> {
  try {
    const problems: string[] = []
    for (const number of list(dir).numbers) {
      const fault = (await readState(dir, number))?.fault
      if (fault !== undefined) problems.push(`state.${number}.json: ${fault}`)
    }
    const witness = new Witness(epochKey(dir))
    const kept = witness.read()
    const state = (await readNewest(dir)).state ?? emptyState(readEpoch(epochKey(dir)))
    const { number, id, lineage, events, head } = state
    if (number > 0 && lineage.at(-1) !== id) problems.push(`the lineage does not end with ${id}`)
    for await (const fault of faultsIn(contentsOf(state), head)) problems.push(fault)
    const lost = witness.faultOf(head, kept)
    if (lost !== undefined) problems.push(lost)
    return { ok: problems.length === 0, problems, events: events.length, head }
  } catch (error) {
    throw refusalFor(error, dir)
  }
}
