import type { Caller } from '../core/caller.ts'
import { giveUp, turnOf, type Waiting } from '../core/lock.ts'
import { Refusal } from '../core/refusal.ts'
import { toldTo } from '../core/touched.ts'
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
  const bell = new Bell(store, ticket_id)
  try {
    for (;;) {
      bell.hush()
      const got = await store.write((view) => ask(view, ticket_id))
      if (!isWaiting(got)) return got as Exclude<O, Waiting>
      let heads = got.position === 1
      for (;;) {
        const left_ms = until - performance.now()
        const why: unknown = signal?.reason
        // The server goes away, the waiter does not: its place is kept for when it asks again.
        if (why instanceof Refusal && why.code === 'unavailable') throw why
        if (left_ms <= 0 || signal?.aborted) {
          const refused = await leave(store, ticket_id, caller)
          throw why instanceof Refusal ? why : refused
        }
        await bell.rungWithin(Math.min(left_ms, pauseFor(store, heads)), signal)
        bell.hush()
        const turn = await store.read((view) => turnOf(view, ticket_id))
        if (turn.broken) throw await leave(store, ticket_id, caller)
        if (turn.ask && !signal?.aborted) break
        heads = turn.heads
      }
    }
  } finally {
    bell.remove()
  }
}

/** A store that hears of all commits calls the waiter; looking is then only a safeguard. */
function pauseFor(store: Store, heads: boolean): number {
  if (store.isFollowing) return FOLLOWING_LOOKS_MS
  return heads ? HEAD_LOOKS_MS : OTHERS_LOOK_MS
}

function leave(store: Store, ticket_id: string, caller: Caller) {
  return store.write((view) => toldTo(view, giveUp(view, ticket_id, caller), caller))
}

export function isWaiting(got: unknown): got is Waiting {
  return typeof got === 'object' && got !== null && 'waiting' in got
}

/** The bells of a store by ticket: a commit wakes whom it names, and costs the others nothing. */
const belfries = new WeakMap<Store, Map<string, Set<Bell>>>()

const RINGS: ReadonlySet<string> = new Set(['ticket.called', 'ticket.broken'])

function belfryOf(store: Store): Map<string, Set<Bell>> {
  const known = belfries.get(store)
  if (known) return known
  const bells = new Map<string, Set<Bell>>()
  belfries.set(store, bells)
  store.onCommit((events) => {
    for (const { type, data } of events) {
      if (!RINGS.has(type)) continue
      for (const bell of bells.get(String(data['ticket'])) ?? []) bell.ring()
    }
  })
  return bells
}

/**
 * Rings when a commit calls the ticket. It hangs there before the ask and keeps its ring until it
 * was heard: the very commit that gives a waiter its place may call it, too.
 */
class Bell {
  private readonly all: Map<string, Set<Bell>>
  private readonly ticket_id: string
  private rung = false
  private wake: (() => void) | undefined

  constructor(store: Store, ticket_id: string) {
    this.all = belfryOf(store)
    this.ticket_id = ticket_id
    // A waiter that lost its connection may come back before the old call has noticed.
    this.all.set(ticket_id, (this.all.get(ticket_id) ?? new Set()).add(this))
  }

  ring(): void {
    this.rung = true
    this.wake?.()
  }

  hush(): void {
    this.rung = false
  }

  remove(): void {
    const bells = this.all.get(this.ticket_id)
    bells?.delete(this)
    if (bells?.size === 0) this.all.delete(this.ticket_id)
  }

  /** Resolves when it rings or has rung, when time is up, or when aborted. */
  rungWithin(pause_ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.rung) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.wake = undefined
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, pause_ms)
      this.wake = done
      signal?.addEventListener('abort', done)
    })
  }
}
