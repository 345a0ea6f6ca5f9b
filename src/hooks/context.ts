import { join } from 'node:path'
import type { Caller } from '../core/caller.ts'
import type { Checkout } from '../machine/checkout.ts'
import type { ShownCheck, ShownReservation } from '../operations/reservations.ts'
import type { Asking } from './asking.ts'
import type { HookSettings } from './settings.ts'
import type { Surroundings } from './targets.ts'

/** What every hook needs: who asks, where, under which settings, and whom. */
export interface HookContext {
  env: NodeJS.ProcessEnv
  settings: HookSettings
  caller: Caller
  around: Surroundings
  asking: Asking
}

/**
 * Whether a reservation is the caller's. With a token the server says who it is, so that its name
 * there is not known here; its process is.
 */
export function isOwn(
  { agent, given, process }: Caller,
  { holder, pid, host }: Pick<ShownReservation, 'holder' | 'pid' | 'host'>,
): boolean {
  if (given || !process) return holder === agent
  return pid === process.pid && host === process.host
}

/** What a hook reserves by itself says so: it is given back at the end of the turn. */
export const EDITING = 'being edited'

/** A path that somebody else has. */
export type Conflict = Extract<ShownCheck, { holder: string }>

/** As many as one call takes, and as many as are looked at in all. */
const NAMES_AT_ONCE = 100
export const NAMES_MAX = 5_000

/** Where paths are, as an ask says it. */
export const placeIn = ({ checkout, project }: Checkout) => ({ checkout, project })

/** Those of `names`, as git calls them, that another agent has reserved for itself alone. */
export async function conflictsIn(
  { asking, caller }: HookContext,
  checkout: Checkout,
  names: readonly string[],
): Promise<Conflict[]> {
  const found: Conflict[] = []
  for (let at = 0; at < Math.min(names.length, NAMES_MAX); at += NAMES_AT_ONCE) {
    const paths = names.slice(at, at + NAMES_AT_ONCE).map((name) => join(checkout.inner, name))
    const input = { paths, ...placeIn(checkout), process: caller.process }
    const { items } = await asking.ask('reserve.check', input, caller)
    for (const item of items) {
      if (item.state === 'held' && !item.shared) found.push(item)
    }
  }
  return found
}

const LISTED_MAX = 1_000
const PAGES_MAX = 10

/** Every reservation there is, page by page, within reason. */
export async function reservationsIn({
  asking,
  caller,
}: Pick<HookContext, 'asking' | 'caller'>): Promise<ShownReservation[]> {
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
