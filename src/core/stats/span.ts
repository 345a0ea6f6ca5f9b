import { type EventDraft, factsOf } from '../event.ts'
import { taskOf } from '../locks/lease.ts'
import type { RunStatus, Status } from '../rows.ts'

/** How a time of holding or waiting ended, or that it has not. */
export const SPAN_ENDINGS = [
  'open',
  'released',
  'done',
  'failed',
  'expired',
  'died',
  'overdue',
  'cancelled',
  'forced',
  'handed_off',
  'granted',
  'gave_up',
  'broken',
] as const
type SpanEnding = (typeof SPAN_ENDINGS)[number]

/** Somebody held a lock, or waited for it, from one time to another. */
export interface LockSpan {
  kind: 'held' | 'waited'
  lock: string
  agent: string
  task: string | null
  fence: number | null
  from: string
  /** Null: it lasts. */
  to: string | null
  ending: SpanEnding
}

const ENDINGS: Partial<Record<EventDraft['type'], SpanEnding>> = {
  'lease.released': 'released',
  'lease.expired': 'expired',
  'lease.died': 'died',
  'lease.overdue': 'overdue',
  'lease.cancelled': 'cancelled',
  'lease.force_released': 'forced',
  'lease.handed_off': 'handed_off',
  'lease.granted': 'granted',
  'ticket.left': 'gave_up',
  'ticket.broken': 'broken',
}

const RUN_ENDINGS: Record<RunStatus, SpanEnding> = {
  running: 'released',
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  lost: 'died',
}

const MOVE_ENDINGS: Partial<Record<Status, SpanEnding>> = {
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}

function endingOf(event: EventDraft): SpanEnding {
  if (event.type === 'task.moved') return MOVE_ENDINGS[event.data.to] ?? 'released'
  if (event.type === 'run.ended') return RUN_ENDINGS[event.data.status]
  return ENDINGS[event.type] ?? 'released'
}

/**
 * What an event ends. The event that ends a hold or a wait says how long that was, so that no other
 * has to be known; of several that tell of one end, only one says so.
 */
export function spanOf(event: EventDraft & { at: string }): LockSpan | undefined {
  const { lock, at, type } = event
  const { held_ms, waited_ms, holder, from, fence, from_fence } = factsOf(event)
  const lasted_ms = held_ms ?? waited_ms
  if (lock === null || lasted_ms === undefined) return undefined
  const isHeld = held_ms !== undefined
  return {
    kind: isHeld ? 'held' : 'waited',
    lock,
    // Who ended it may be another than who had it.
    agent: holder ?? (type === 'lease.handed_off' ? String(from) : event.agent),
    task: taskOf(lock) ?? null,
    fence: isHeld ? (from_fence ?? fence ?? null) : null,
    from: new Date(Date.parse(at) - lasted_ms).toISOString(),
    to: at,
    ending: endingOf(event),
  }
}
