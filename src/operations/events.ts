import type { Caller } from '../core/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { eventSeen } from '../core/sight.ts'
import { isScoped } from '../core/token_scope.ts'
import { type Event, factsOf, nounOf, type ShownEvent } from '../core/event.ts'
import type { Store } from '../stores/writer/store.ts'
import * as answers from './answers/locks.ts'
import { usedBy } from './budget.ts'
import * as f from './fields.ts'
import { field, readOperation } from './operation.ts'
import * as s from './schemas.ts'

const PAGE = 500
/** A call looks at this many events; `next` continues from there, even if few of them fit. */
const WALK_MAX = 10_000

export interface EventsFound {
  items: ShownEvent[]
  next: string | null
}

interface Wanted {
  type?: string | undefined
  lock?: string | undefined
  task_id?: string | undefined
  by?: string | undefined
  since_seconds?: number | undefined
  limit: number
  after?: string | undefined
}

export const list = readOperation({
  name: 'event.list',
  refuses: ['invalid'],
  doc: 'Events, newest first: all of them, or those of a lock, a task or an agent.',
  input: {
    type: field(
      () => s.optional(s.plain(64)),
      'Only events of this type (lease.expired), or of all types of a kind (run).',
      '--type <type>',
    ),
    lock: field(() => s.optional(s.plain(512)), 'Only events of this lock.', '--lock <name>'),
    task_id: f.onlyTask,
    by: field(() => s.optional(s.plain(256)), 'Only events caused by this agent.', '--by <agent>'),
    since_seconds: field(
      () => s.optional(s.seconds(1, 365 * 86_400)),
      'How far back to look.',
      '--since <duration>',
    ),
    limit: f.limit,
    after: f.after,
  },
  output: answers.events,
  command: 'event list',
  lookup: (store, input, caller): Promise<EventsFound> => walkBack(store, input, caller),
  decide: (_view, _input, _caller, _ticket, found) => found!,
})

/** Positions have no gaps, so the past is read page by page from its end. */
async function walkBack(store: Store, wanted: Wanted, caller: Caller): Promise<EventsFound> {
  const { position: newest } = await store.head()
  const since = sinceOf(store, wanted)
  const items: ShownEvent[] = []
  let end = Math.min(newest, positionIn(wanted.after) - 1)
  for (let walked = 0; end > 0 && walked < WALK_MAX; walked += PAGE) {
    const begin = Math.max(0, end - PAGE)
    const found = await store.events(begin, end - begin)
    // After pruning, later events are found in place of those that are gone: shown already.
    const page = found.filter(({ position }) => position <= end)
    const seen = new Set(await eventsSeen(store, page, caller))
    for (const event of page.toReversed()) {
      if (event.at < since) return { items, next: null }
      if (!seen.has(event) || !isWanted(event, wanted)) continue
      if (items.length === wanted.limit) return { items, next: String(event.position + 1) }
      const { hash: _, ...shown } = event
      items.push(shown)
    }
    // What is missing at the beginning of a page was pruned, and all before it too.
    if (page.length < end - begin) return { items, next: null }
    end = begin
  }
  return { items, next: end > 0 ? String(end + 1) : null }
}

/** What one token may see is worked out once for all streams that use it. */
const found = new WeakMap<Event[], Map<object, Promise<Event[]>>>()

/** Those of `events` that the caller may be told of. */
export async function eventsSeen(store: Store, events: Event[], caller: Caller): Promise<Event[]> {
  if (!isScoped(caller)) return events
  const whose = usedBy(caller)?.budget ?? caller
  const known = found.get(events) ?? new Map<object, Promise<Event[]>>()
  found.set(events, known)
  let seen = known.get(whose)
  if (!seen) {
    seen = store.read((view) => events.filter((event) => eventSeen(view, event, caller)))
    known.set(whose, seen)
  }
  return seen
}

function sinceOf(store: Store, { since_seconds }: Wanted): string {
  if (since_seconds === undefined) return ''
  return new Date(store.machine.wallMs() - since_seconds * 1000).toISOString()
}

function isWanted(event: Event, { type, lock, task_id, by }: Wanted): boolean {
  if (type !== undefined && event.type !== type && nounOf(event) !== type) return false
  if (by !== undefined && event.agent !== by) return false
  if (task_id !== undefined && event.task !== task_id && event.lock !== `task:${task_id}`) {
    return false
  }
  if (lock === undefined || event.lock === lock) return true
  return factsOf(event).names?.includes(lock) ?? false
}

/** The event in front of which to go on. */
function positionIn(after: string | undefined): number {
  if (after === undefined) return Number.MAX_SAFE_INTEGER
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw new Refusal('invalid', 'after is not the `next` of a page', {
    next: 'Leave it out to begin at the newest event.',
  })
}
