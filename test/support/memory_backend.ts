import type { Cursor } from '../../src/core/schema/indexes.ts'
import type { AnyRow, IndexName, TableName, Tables } from '../../src/core/schema/schema.ts'
import { type Need, NotLoaded } from '../../src/core/view.ts'
import type { Event } from '../../src/core/event.ts'
import { EMPTY_HEAD } from '../../src/stores/writer/chain.ts'
import { MemoryCounter, MemoryTables } from '../../src/stores/memory.ts'
import {
  type Backend,
  type Base,
  type Commit,
  CommitUnknown,
  type Counter,
  type Head,
} from '../../src/stores/port.ts'

/** What one place in memory holds; every backend opened on it sees the same. */
class Place {
  readonly tables = new MemoryTables()
  events: Event[] = []
  head: Head = EMPTY_HEAD
  private turn: Promise<void> = Promise.resolve()

  /** One writer at a time; the function it returns lets the next one in. */
  async enter(): Promise<() => void> {
    const before = this.turn
    let leave = () => {}
    this.turn = new Promise((resolve) => (leave = resolve))
    await before
    return leave
  }
}

const places = new Map<string, Place>()

function placeAt(name: string): Place {
  let place = places.get(name)
  if (!place) places.set(name, (place = new Place()))
  return place
}

/**
 * A store in memory. Committed rows are frozen: a rule that edits one in place fails. And it has no
 * row until it was asked for by name, batch by batch, as a store across a network: so it shows as
 * well that every rule may be run again.
 */
export class MemoryBackend implements Backend {
  readonly isDatabase = true
  readonly counter = new MemoryCounter(() => {
    const { tables, events } = this.place
    return { tables, events: events.length, bytes: 0 }
  })
  private readonly place: Place
  private readonly loaded = new Set<string>()
  private leave: (() => void) | undefined

  constructor(place: string) {
    this.place = placeAt(place)
  }

  async begin(): Promise<Head> {
    this.leave = await this.place.enter()
    this.loaded.clear()
    return this.place.head
  }

  async prefetch(needs: Need[]): Promise<void> {
    for (const need of needs) this.loaded.add(JSON.stringify(need))
  }

  private check(need: Need): void {
    if (!this.loaded.has(JSON.stringify(need))) throw new NotLoaded(need)
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    this.check({ table, key })
    return this.place.tables.get(table, key)
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    this.check({ index, group, ...(after && { after }) })
    return this.place.tables.scan(index, group, after, limit)
  }

  commit({ changes, events, forgets, head }: Commit): 'done' {
    for (const rows of Object.values(changes)) {
      for (const row of rows.values()) if (row) Object.freeze(row)
    }
    this.place.tables.apply(changes)
    this.place.events.push(...events)
    if (forgets) {
      this.place.events = this.place.events.filter(({ position }) => position > forgets.position)
    }
    this.place.head = head
    this.rollback()
    return 'done'
  }

  rollback(): void {
    this.leave?.()
    this.leave = undefined
  }

  snapshot<T>(look: (base: Base, head: Head) => T): T {
    return look(this.place.tables, this.place.head)
  }

  events(after: number, limit: number): Event[] {
    const from = this.place.events.findIndex((event) => event.position > after)
    return from < 0 ? [] : this.place.events.slice(from, from + limit)
  }

  close(): void {
    this.rollback()
  }
}

/** How the next commit goes wrong. */
export type Fault = 'lost_reply' | 'fail' | 'again'

/** Any backend, with accidents: each commit takes the next fault off the list. */
export class FaultyBackend implements Backend {
  readonly isDatabase = true
  readonly faults: Fault[] = []
  readonly counter: Counter

  constructor(private readonly inner: Backend) {
    this.counter = inner.counter
  }

  get isRemote(): boolean {
    return this.inner.isRemote ?? false
  }

  /** A look that changes something, and so can be run only once: it gets all rows at once. */
  lookOnce<T>(look: (base: Base, head: Head) => T): Promise<T> | T {
    type Whole = { whole?: (look: (base: Base, head: Head) => T) => Promise<T> }
    const { whole } = this.inner as Whole
    return whole ? whole.call(this.inner, look) : this.inner.snapshot(look)
  }

  async commit(commit: Commit): Promise<'done' | 'again'> {
    const fault = this.faults.shift()
    if (fault === 'fail' || fault === 'again') {
      await this.inner.rollback()
      if (fault === 'again') return 'again'
      throw new Error('the disk said no, nothing was written')
    }
    const done = await this.inner.commit(commit)
    if (fault === 'lost_reply') throw new CommitUnknown('the reply was lost')
    return done
  }

  begin = () => this.inner.begin()
  prefetch = (needs: Need[]) => this.inner.prefetch(needs)
  rollback = () => this.inner.rollback()
  events = (after: number, limit: number) => this.inner.events(after, limit)
  close = () => this.inner.close()

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.inner.get(table, key)
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.inner.scan(index, group, after, limit)
  }

  snapshot<T>(look: (base: Base, head: Head) => T): Promise<T> | T {
    return this.inner.snapshot(look)
  }
}
