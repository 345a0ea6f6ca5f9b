import type { Caller } from '../core/caller.ts'
import { giveUp, turnOf, type Waiting } from '../core/lock.ts'
import { Refusal } from '../core/refusal.ts'
import type { View } from '../core/view.ts'
import { uniqueId } from '../stores/digest.ts'
import type { Store } from '../stores/store.ts'

/** Without a word from the store the head looks this often, the others less often. */
const HEAD_LOOKS_MS = 100
const OTHERS_LOOK_MS = 1_000
const FOLLOWING_LOOKS_MS = 10_000

interface Patience {
  wait_ms: number
  caller: Caller
  signal?: AbortSignal | undefined
  /** The ticket's id; with a request id, a waiter that comes back finds its place again. */
  ticket_id?: string | undefined
}

/**
 * Asks for a lock, and while it is held waits in the line that the store keeps. It asks again only
 * when it is its turn: called by a commit of this process, or seen by looking.
 * Ends with what was asked, or `held` with the position when time is up.
 */
export async function waitInLine<O>(
  store: Store,
  ask: (view: View, ticket_id: string) => O,
  { wait_ms, caller, signal, ticket_id = uniqueId() }: Patience,
): Promise<Exclude<O, Waiting>> {
  const until = performance.now() + wait_ms
  for (;;) {
    const got = await store.write((view) => ask(view, ticket_id))
    if (!isWaiting(got)) return got as Exclude<O, Waiting>
    let { position } = got
    for (;;) {
      const left_ms = until - performance.now()
      // The server goes away, the waiter does not: its place is kept for when it asks again.
      if (signal?.reason instanceof Refusal) throw signal.reason
      if (left_ms <= 0 || signal?.aborted) throw await leave(store, ticket_id, caller)
      const pause_ms = Math.min(left_ms, pauseFor(store, position))
      await calledOrAfter(store, ticket_id, pause_ms, signal)
      const turn = await store.read((view) => turnOf(view, ticket_id))
      if (turn.broken) throw await leave(store, ticket_id, caller)
      if (turn.ask) break
      position = turn.position
    }
  }
}

/** A store that hears of all commits calls the waiter; looking is then only a safeguard. */
function pauseFor(store: Store, position: number): number {
  if (store.isFollowing) return FOLLOWING_LOOKS_MS
  return position === 1 ? HEAD_LOOKS_MS : OTHERS_LOOK_MS
}

function leave(store: Store, ticket_id: string, caller: Caller) {
  return store.write((view) => giveUp(view, ticket_id, caller))
}

export function isWaiting(got: unknown): got is Waiting {
  return typeof got === 'object' && got !== null && 'waiting' in got
}

/** Resolves when a commit of this process names the ticket, when time is up, or when aborted. */
function calledOrAfter(
  store: Store,
  ticket_id: string,
  pause_ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      unsubscribe()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, pause_ms)
    const unsubscribe = store.onCommit((events) => {
      if (events.some((event) => event.data['ticket'] === ticket_id)) done()
    })
    signal?.addEventListener('abort', done)
  })
}
