import { literalGlob } from '../core/paths/glob.ts'
import { Refusal } from '../core/refusal.ts'
import type { ShownReservation } from '../operations/reservations.ts'
import { EDITING, type HookContext, isOwn } from './context.ts'
import { endGuard } from './net.ts'
import type { Verdict } from './protocol.ts'

const LISTED_MAX = 1_000
const PAGES_MAX = 10
const PATHS_AT_ONCE = 100

/**
 * Between two turns an agent may wait for a person for hours: what its edits reserved is given
 * back, and the next edit reserves again. What it asked for itself it keeps for as long as it said.
 */
export async function endTurn({
  asking,
  caller,
}: Pick<HookContext, 'asking' | 'caller'>): Promise<Verdict> {
  const items = await listed(asking, caller)
  const places = new Map<string, ShownReservation[]>()
  for (const item of items) {
    if (!isOwn(caller, item) || item.reason !== EDITING) continue
    const key = JSON.stringify([item.checkout, item.project])
    places.set(key, [...(places.get(key) ?? []), item])
  }
  for (const [first, ...rest] of places.values()) {
    const paths = [first!, ...rest].map(({ path }) => path)
    for (let at = 0; at < paths.length; at += PATHS_AT_ONCE) {
      const input = {
        paths: paths.slice(at, at + PATHS_AT_ONCE),
        checkout: first!.checkout,
        ...(first!.project !== null && { project: first!.project }),
        process: caller.process,
      }
      await asking.ask('reserve.release', input, caller).catch(ignoreLost)
    }
    const { checkout } = first!
    endGuard(asking.folder, (each) => {
      const isTheirs = each.holder === caller.agent || !caller.given
      return isTheirs && each.checkout === checkout && paths.includes(literalGlob(each.name))
    })
  }
  return {}
}

/** Every reservation there is, page by page, within reason. */
async function listed(
  asking: HookContext['asking'],
  caller: HookContext['caller'],
): Promise<ShownReservation[]> {
  const found: ShownReservation[] = []
  let after: string | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const input = { limit: LISTED_MAX, ...(after !== undefined && { after }) }
    const { items, next } = await asking.ask('reserve.list', input, caller)
    found.push(...items)
    if (next === null) break
    after = next
  }
  return found
}

/** Over since it was listed, or of another process with our id: then it is not ours to release. */
function ignoreLost(error: unknown): void {
  if (!(error instanceof Refusal) || error.code === 'unavailable') throw error
}
