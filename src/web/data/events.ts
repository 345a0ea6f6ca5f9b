import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { Refusal } from '../../core/refusal.ts'
import type { InputOf } from '../../operations/registry.ts'
import { ask, pagesOf } from '../ask.ts'
import { Repeated } from './asked.ts'
import { listen, type ShownEvent } from './live.ts'

export type EventFilter = Pick<
  InputOf<'event.list'>,
  'type' | 'by' | 'lock' | 'task_id' | 'since_seconds'
>

const PAGE = 200
/** What a page keeps of what it hears; older ones can be loaded again. */
const KEPT_MAX = 5_000

/** Events that fit, newest first: older ones on demand, new ones as they come. */
class EventList {
  readonly items = signal<ShownEvent[]>([])
  readonly refusal = signal<Refusal | null>(null)
  readonly isLoading = signal(true)
  /** Where older ones go on; null: there are none. */
  readonly next = signal<string | null>(null)
  readonly lookedTo = signal<string | null>(null)
  private isKnown = false
  private readonly ending = new AbortController()
  private readonly asking = new Repeated((ending) =>
    this.isKnown ? this.newer(ending) : this.load(ending),
  )
  private readonly unlisten = listen({
    events: () => this.asking.soon(),
    reset: () => {
      this.isKnown = false
      this.asking.soon()
    },
  })

  constructor(private readonly filter: EventFilter) {
    this.asking.soon()
  }

  close(): void {
    this.unlisten()
    this.asking.end()
    this.ending.abort()
  }

  older = (): void => {
    const { value: after } = this.next
    if (after === null || this.isLoading.value) return
    void this.load(this.ending.signal, after).catch(() => undefined)
  }

  /** The first page, or the one behind `after`; a search that was bounded goes on. */
  private async load(ending: AbortSignal, after?: string): Promise<void> {
    this.isLoading.value = true
    try {
      const before = after === undefined ? [] : this.items.value
      const from: { after?: string } = after === undefined ? {} : { after }
      const pages = pagesOf('event.list', { ...this.filter, ...from, limit: PAGE }, ending)
      for await (const { items, next, looked_to } of pages) {
        const last = before.at(-1)?.position ?? Number.MAX_SAFE_INTEGER
        const more = items.filter(({ position }) => position < last)
        this.items.value = [...before, ...more]
        this.next.value = next
        this.lookedTo.value = looked_to
        this.refusal.value = null
        this.isKnown = true
        if (more.length > 0) return
      }
    } catch (error) {
      if (error instanceof Refusal) this.refusal.value = error
      throw error
    } finally {
      this.isLoading.value = false
    }
  }

  /** What fits is for the server to say, so it is asked what came. */
  private async newer(ending: AbortSignal): Promise<void> {
    const [newest] = this.items.value
    const from = newest && { from: newest.at }
    const got = await ask('event.list', { ...this.filter, ...from, limit: PAGE }, ending)
    const fresh = got.items.filter(({ position }) => position > (newest?.position ?? 0))
    if (fresh.length === 0) return
    // More came than one answer holds: those in between are loaded like all older ones.
    const isAll = got.next === null || fresh.length < got.items.length
    const all = isAll ? [...fresh, ...this.items.value] : fresh
    if (!isAll) this.next.value = got.next
    if (all.length > KEPT_MAX) {
      all.length = KEPT_MAX
      this.next.value = String(all.at(-1)!.position)
    }
    this.items.value = all
  }
}

export function useEvents(filter: EventFilter): EventList {
  const key = JSON.stringify(filter)
  const list = useMemo(() => new EventList(filter), [key])
  useEffect(() => () => list.close(), [list])
  return list
}
