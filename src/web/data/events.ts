import { signal, useSignal } from '@preact/signals'
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
  private readonly first = new Repeated(() => this.load({}))
  private readonly newer = new Repeated(() => this.catchUp())
  private readonly unlisten: () => void
  /** What was heard and is not shown yet: in a flood, moving all rows costs most. */
  private heard: ShownEvent[] = []

  constructor(private readonly filter: EventFilter) {
    this.unlisten = listen({
      events: (events) => {
        this.heard.push(...events)
        this.newer.soon()
      },
      reset: () => this.first.soon(),
    })
    this.first.soon()
  }

  close(): void {
    this.unlisten()
    this.first.end()
    this.newer.end()
  }

  older = (): void => {
    const { value: after } = this.next
    if (after === null || this.isLoading.value) return
    void this.load({ after }).catch((error: unknown) => this.fail(error))
  }

  private async load(from: { after?: string }): Promise<void> {
    this.isLoading.value = true
    try {
      const got = await ask('event.list', { ...this.filter, ...from, limit: PAGE })
      if (from.after === undefined) this.items.value = []
      const last = this.items.value.at(-1)?.position ?? Number.MAX_SAFE_INTEGER
      const fresh = got.items.filter(({ position }) => position < last)
      this.items.value = [...this.items.value, ...fresh]
      this.next.value = got.next
      this.lookedTo.value = got.looked_to
      this.refusal.value = null
    } catch (error) {
      this.fail(error)
      throw error
    } finally {
      this.isLoading.value = false
      if (this.heard.length > 0) this.newer.soon()
    }
  }

  private async catchUp(): Promise<void> {
    // What is loading ends with this.
    if (this.isLoading.value) return
    const heard = this.heard.splice(0).toReversed()
    // What fits is for the server to say; without a filter all do.
    if (Object.values(this.filter).every((value) => value === undefined)) return this.add(heard)
    const from = this.items.value[0]?.at
    const { items } = await ask('event.list', {
      ...this.filter,
      ...(from && { from }),
      limit: PAGE,
    })
    this.add(items)
  }

  private add(events: ShownEvent[]): void {
    const newest = this.items.value[0]?.position ?? 0
    const fresh = events.filter(({ position }) => position > newest)
    if (fresh.length === 0) return
    const all = [...fresh, ...this.items.value]
    if (all.length > KEPT_MAX) {
      all.length = KEPT_MAX
      this.next.value = String(all.at(-1)!.position)
    }
    this.items.value = all
  }

  private fail(error: unknown): void {
    if (error instanceof Refusal) this.refusal.value = error
  }
}

export function useEvents(filter: EventFilter): EventList {
  const key = JSON.stringify(filter)
  const list = useMemo(() => new EventList(filter), [key])
  useEffect(() => () => list.close(), [list])
  return list
}

const EXPORT_MAX = 200_000

/** All that fit, oldest first, one per line; and how many, as long as they come. */
export function useExport(filter: EventFilter) {
  const count = useSignal<number | null>(null)
  const gather = async (): Promise<{ lines: string[]; isWhole: boolean }> => {
    const lines: string[] = []
    try {
      for await (const { items } of pagesOf('event.list', { ...filter, limit: 1000 })) {
        for (const event of items) lines.push(`${JSON.stringify(event)}\n`)
        count.value = lines.length
        if (lines.length >= EXPORT_MAX) return { lines: lines.toReversed(), isWhole: false }
      }
      return { lines: lines.toReversed(), isWhole: true }
    } finally {
      count.value = null
    }
  }
  return { count, gather }
}
