import type { Caller } from '../core/caller.ts'
import { disownTicket } from '../core/locks/line.ts'
import { giveUp, type Waiting } from '../core/locks/lock.ts'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { toldTo } from '../core/touched.ts'
import { uniqueId } from '../machine/digest.ts'
import type { Store } from '../stores/writer/store.ts'
import { roomOf } from './waiting_room.ts'

interface Patience {
  wait_ms: number
  caller: Caller
  signal?: AbortSignal | undefined
  /** The ticket's id; with a request id, a waiter that comes back finds its place again. */
  ticket_id?: string | undefined
}

/**
 * Asks for a lock, and while it is held waits in the line that the store keeps. It asks again only
 * when it is its turn. Ends with what was asked, or `held` with the position when time is up.
 */
export async function waitInLine<O>(
  store: Store,
  ask: (ticket_id: string) => Promise<O | Waiting>,
  { wait_ms, caller, signal, ticket_id: given }: Patience,
): Promise<O> {
  const ticket_id = given ?? uniqueId()
  const until = performance.now() + wait_ms
  const seat = roomOf(store).enter(ticket_id)
  const leave = () => store.write((view) => toldTo(view, giveUp(view, ticket_id, caller), caller))
  let isHere = false
  let isKept = false
  try {
    for (;;) {
      seat.hush()
      const got = await ask(ticket_id)
      if (!isWaiting(got)) return got
      isHere = true
      const called = await seat.calledWithin(until - performance.now(), signal)
      const why: unknown = signal?.reason
      // The server goes away, the waiter does not: its place is kept for when it asks again.
      isKept = isRefusal(why, 'unavailable')
      if (isKept) throw why
      if (called === 'ask' && !signal?.aborted) continue
      const refused = await leave()
      isKept = true
      throw why instanceof Refusal ? why : refused
    }
  } catch (error) {
    // Nobody waits with this ticket any more, but while this process lives the ticket would count
    // as waiting. A caller with a request id may come back to it.
    const settle = given === undefined ? () => leave() : () => disown(store, ticket_id)
    const isUnknown = !(error instanceof Refusal) || error.code === 'unavailable'
    if (!isKept && (isHere || isUnknown)) roomOf(store).settleLater(ticket_id, settle)
    throw error
  } finally {
    seat.leave()
  }
}

function disown(store: Store, ticket_id: string): Promise<void> {
  return store.write((view) => disownTicket(view, ticket_id))
}

export function isWaiting(got: unknown): got is Waiting {
  return typeof got === 'object' && got !== null && 'waiting' in got
}
