import { factsOf } from '../../core/event.ts'
import { holderIn } from './about.ts'
import type { ShownEvent } from './live.ts'

/** How a span of time ended, or that it has not. */
type Ending =
  | 'open'
  | 'released'
  | 'expired'
  | 'died'
  | 'killed'
  | 'handed off'
  | 'got it'
  | 'gave up'

/** Somebody held a lock, or waited for it, for some time. */
export interface Span {
  kind: 'held' | 'waited'
  lock: string
  agent: string
  from_ms: number
  to_ms: number | null
  ending: Ending
  fence: number | null
}

const ENDINGS: Record<string, Ending> = {
  'lease.released': 'released',
  'lease.expired': 'expired',
  'lease.died': 'died',
  'lease.overdue': 'killed',
  'lease.force_released': 'killed',
  'lease.cancelled': 'killed',
  'run.ended': 'released',
}

/**
 * Reads who held and waited for what from events in order. What was granted before the first event
 * is known only by its end.
 */
export class SpanReader {
  spans: Span[] = []
  private readonly held = new Map<string, Span>()
  private readonly waits = new Map<string, Span[]>()
  private position = 0

  constructor(private readonly from_ms: number) {}

  /** Each event once, whether it came with the past or just now. */
  takeAll(events: ShownEvent[]): void {
    for (const event of events) {
      if (event.position <= this.position) continue
      this.position = event.position
      this.take(event)
    }
  }

  /** What was over before then is of no interest any more. */
  forget(before_ms: number): void {
    const isKept = ({ to_ms }: Span) => to_ms === null || to_ms >= before_ms
    this.spans = this.spans.filter(isKept)
    for (const [agent, waits] of this.waits) this.waits.set(agent, waits.filter(isKept))
  }

  private take(event: ShownEvent): void {
    const { type, lock, data, agent } = event
    const at = Date.parse(event.at)
    if (type === 'ticket.joined') return this.join(event, at)
    if (type === 'ticket.left' || type === 'ticket.broken') return this.leave(event, at)
    if (lock === null) return
    const { fence = null } = factsOf(event)
    if (type === 'lease.granted' || type === 'task.claimed')
      return this.grant(lock, agent, at, fence)
    if (type === 'lease.handed_off') {
      this.end(lock, data.from, at, 'handed off')
      return this.grant(lock, data.to, at, fence)
    }
    const ending = type === 'task.moved' && data.released ? 'released' : ENDINGS[type]
    if (ending) this.end(lock, holderIn(event), at, ending)
  }

  private grant(lock: string, agent: string, at: number, fence: number | null): void {
    const before = this.held.get(lock)
    // A claim that keeps its lease is no new grant.
    if (before?.fence === fence) return
    if (before) this.end(lock, before.agent, at, 'released')
    for (const wait of this.waits.get(agent) ?? []) {
      if (wait.lock === lock && wait.to_ms === null) [wait.to_ms, wait.ending] = [at, 'got it']
    }
    const span = this.add('held', lock, agent, at)
    span.fence = fence
    this.held.set(lock, span)
  }

  private end(lock: string, agent: string, at: number, ending: Ending): void {
    const span = this.held.get(lock) ?? this.add('held', lock, agent, this.from_ms)
    ;[span.to_ms, span.ending] = [at, ending]
    this.held.delete(lock)
  }

  private join(event: ShownEvent, at: number): void {
    const { agent } = event
    const { names = [] } = factsOf(event)
    const spans = names.map((lock) => this.add('waited', lock, agent, at))
    this.waits.set(agent, [...(this.waits.get(agent) ?? []), ...spans])
  }

  private leave({ agent, type }: ShownEvent, at: number): void {
    for (const wait of this.waits.get(agent) ?? []) {
      if (wait.to_ms !== null) continue
      ;[wait.to_ms, wait.ending] = [at, type === 'ticket.broken' ? 'killed' : 'gave up']
    }
  }

  private add(kind: Span['kind'], lock: string, agent: string, from_ms: number): Span {
    const span: Span = {
      kind,
      lock,
      agent,
      from_ms,
      to_ms: null,
      ending: 'open',
      fence: null,
    }
    this.spans.push(span)
    return span
  }
}
