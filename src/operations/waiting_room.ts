import { keepTickets } from '../core/locks/line.ts'
import { CALL_MS, TICKET_MS } from '../core/bounds.ts'
import { type LineTurn, turnOf } from '../core/locks/lock.ts'
import type { View } from '../core/view.ts'
import { type Event, factsOf } from '../core/event.ts'
import type { Store } from '../stores/writer/store.ts'

/** Where nobody tells of other processes' commits, heads look this often, the others less often. */
const HEAD_LOOKS_MS = 100
const LOOKS_MS = 1_000

/** So many are looked at each time whether or not anything names them: a safeguard. */
const ANYWAY_MAX = 500
/** And in so many lines: one may wait for a hundred locks, and each is a line to look at. */
const ANYWAY_LINES_MAX = 1_000

/** Several times before others would take those who wait here for gone. */
const KEEP_MS = TICKET_MS / 3
const KEPT_AT_ONCE = 256

const SETTLE_MS = 200
const SETTLE_MS_MAX = 5_000

/** Asking again now would get the locks; or it is of no use any more. */
type Called = 'ask' | 'broken'

/** One who waits here with a ticket. */
interface Seat {
  /** Forgets a call: the ask that follows answers it. */
  hush(): void
  /** Resolves with the call, or undefined when time is up or `signal` says so. */
  calledWithin(ms: number, signal: AbortSignal | undefined): Promise<Called | undefined>
  leave(): void
}

/**
 * Those of this process who wait on one store. A commit that names a ticket has it looked at, once
 * for all whom it names; beside that there is one look a second for everybody together, so that ten
 * thousand waiters cost little more than one.
 */
class WaitingRoom {
  /** A waiter that lost its connection may come back before its old call has noticed. */
  private readonly seats = new Map<string, Set<(called: Called) => void>>()
  private readonly named = new Set<string>()
  /** Those who headed their lines at the last look. */
  private heads = new Set<string>()
  private looking = false
  private looks: NodeJS.Timeout | undefined
  private keeps: NodeJS.Timeout | undefined
  /** Where the looks that are made anyway have come to. */
  private round: Iterator<string> | undefined

  constructor(private readonly store: Store) {
    store.onCommit((events) => this.hear(events))
  }

  enter(ticket_id: string): Seat {
    let called: Called | undefined
    let wake: (() => void) | undefined
    const ring = (how: Called) => {
      called = how
      wake?.()
    }
    this.seats.set(ticket_id, (this.seats.get(ticket_id) ?? new Set()).add(ring))
    this.looks ??= this.lookIn(LOOKS_MS)
    this.keeps ??= setInterval(() => void this.keep(), KEEP_MS)
    return {
      hush: () => (called = undefined),
      calledWithin: (ms, signal) =>
        new Promise((resolve) => {
          const done = () => {
            clearTimeout(timer)
            signal?.removeEventListener('abort', done)
            wake = undefined
            resolve(called)
          }
          const timer = setTimeout(done, Math.max(0, ms))
          signal?.addEventListener('abort', done)
          wake = done
          if (called || signal?.aborted) done()
        }),
      leave: () => this.leave(ticket_id, ring),
    }
  }

  private leave(ticket_id: string, ring: (called: Called) => void): void {
    const rings = this.seats.get(ticket_id)
    rings?.delete(ring)
    if (rings?.size === 0) this.seats.delete(ticket_id)
    if (this.seats.size > 0) return
    clearTimeout(this.looks)
    clearInterval(this.keeps)
    this.looks = undefined
    this.keeps = undefined
  }

  /**
   * That a ticket is called is a fact, made where its turn came about. Of whatever else happened to
   * a ticket its row tells, to those who still wait when the asks of that commit are answered.
   */
  private hear(events: Event[]): void {
    if (this.seats.size === 0) return
    for (const event of events) {
      const { type } = event
      const { ticket } = factsOf(event)
      if (ticket === undefined || !this.seats.has(ticket)) continue
      if (type === 'ticket.called') this.ring(ticket, 'ask')
      else this.named.add(ticket)
    }
    if (this.named.size > 0) setImmediate(() => void this.look())
  }

  private ring(ticket_id: string, called: Called): void {
    for (const ring of this.seats.get(ticket_id) ?? []) ring(called)
  }

  private lookIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.looks = this.lookIn(this.pause)
      void this.look(true)
    }, ms)
  }

  /** A store that hears of all commits need not be looked at so often. */
  private get pause(): number {
    return this.heads.size > 0 && !this.store.isFollowing ? HEAD_LOOKS_MS : LOOKS_MS
  }

  private async look(anyway = false): Promise<void> {
    if (this.looking) return
    this.looking = true
    try {
      // A store that follows commits hears of every call, so the heads need not look.
      const heads = this.store.isFollowing ? [] : this.heads
      const others = anyway ? [...heads, ...this.next()] : []
      do {
        const named = [...this.named].filter((id) => this.seats.has(id))
        this.named.clear()
        const extra = others.splice(0)
        if (named.length + extra.length === 0 && !anyway) return
        const turns = await this.store.read((view) => this.turnsOf(view, named, extra, anyway))
        if (anyway) this.heads = new Set()
        for (const [id, turn] of turns) this.tell(id, turn)
      } while (this.named.size > 0)
    } catch {
      // The store is in trouble and says so to everyone who asks; the next look tries again.
    } finally {
      this.looking = false
    }
  }

  private turnsOf(view: View, named: string[], others: string[], anyway: boolean) {
    const wanted = new Set(named)
    // Called waiters have little time: an index finds them without going through all who wait.
    if (anyway) {
      for (const { id } of view.due('tickets_due', '', view.now + CALL_MS)) wanted.add(id)
    }
    let lines = 0
    for (const id of others) {
      if (lines > ANYWAY_LINES_MAX) break
      lines += view.get('ticket', id)?.names.length ?? 1
      wanted.add(id)
    }
    const here = [...wanted].filter((id) => this.seats.has(id))
    return new Map(here.map((id) => [id, turnOf(view, id)]))
  }

  private tell(id: string, { heads, ask, broken }: LineTurn): void {
    if (heads) this.heads.add(id)
    if (ask || broken) this.ring(id, ask ? 'ask' : 'broken')
  }

  /** Some of those who wait, others each time, until all had their turn. */
  private next(): string[] {
    const found: string[] = []
    while (found.length < Math.min(ANYWAY_MAX, this.seats.size)) {
      this.round ??= this.seats.keys()
      const { value, done } = this.round.next()
      if (done) {
        this.round = undefined
        if (found.length > 0) break
      } else found.push(value)
    }
    return found
  }

  /** On a machine that cannot see this process, a ticket is alive as long as it is spoken for. */
  private async keep(): Promise<void> {
    const ids = [...this.seats.keys()]
    for (let at = 0; at < ids.length; at += KEPT_AT_ONCE) {
      const some = ids.slice(at, at + KEPT_AT_ONCE)
      // If it cannot be written now, the next time will do.
      await this.store.write((view) => keepTickets(view, some)).catch(() => undefined)
    }
  }

  /**
   * Does what a store in trouble did not let be done, as soon as it does; unless somebody waits
   * with this ticket again.
   */
  settleLater(ticket_id: string, settle: () => Promise<unknown>, pause_ms = SETTLE_MS): void {
    const again = () => {
      if (this.seats.has(ticket_id) || this.store.isClosed) return
      settle().catch(() => {
        this.settleLater(ticket_id, settle, Math.min(pause_ms * 2, SETTLE_MS_MAX))
      })
    }
    setTimeout(again, pause_ms).unref()
  }
}

const rooms = new WeakMap<Store, WaitingRoom>()

export function roomOf(store: Store): WaitingRoom {
  let room = rooms.get(store)
  if (!room) rooms.set(store, (room = new WaitingRoom(store)))
  return room
}
