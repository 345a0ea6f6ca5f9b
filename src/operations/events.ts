import { setImmediate as othersTurn } from 'node:timers/promises'
import type { Caller } from '../core/caller.ts'
import { lockOf, taskOf } from '../core/locks/lease.ts'
import { userOf } from '../core/queue/share.ts'
import { firstOf } from '../core/first.ts'
import { Refusal } from '../core/refusal.ts'
import { sizeOf } from '../core/text.ts'
import { eventTold } from '../core/sight.ts'
import { isScoped } from '../core/token_scope.ts'
import { type LockSpan, spanOf } from '../core/stats/span.ts'
import type { View } from '../core/view.ts'
import { type Event, factsOf, nounOf, type ShownEvent } from '../core/event.ts'
import type { Sought } from '../stores/port.ts'
import type { Store } from '../stores/writer/store.ts'
import * as answers from './answers/locks.ts'
import { usedBy } from './budget.ts'
import * as f from './fields.ts'
import { field, readOperation } from './operation.ts'
import { PAGE_BYTES } from './page.ts'
import * as s from './schemas.ts'

/** So many events are looked at in one step; others are answered between two steps. */
const PAGE = 500
/** The same where the store leaves out what is not about the subject. */
const SOUGHT_PAGE = 20_000
/** A call looks at this many events; `next` continues from there, even if few of them fit. */
const WALK_MAX = 10_000
/** As many as a store keeps, unless it is told otherwise: a subject's history is found whole. */
const SOUGHT_MAX = 1_000_000
/** Holds and waits that last: more than this are no picture any more. */
const OPEN_MAX = 1_000
/** Locks of our own programs are no work. */
const OWN = /^leasehold:/

export interface EventsFound<Item> {
  items: Item[]
  next: string | null
  /** When the oldest event that was looked at happened; null: there are no older ones. */
  looked_to: string | null
}

interface Window {
  since_seconds?: number | undefined
  from?: string | undefined
  to?: string | undefined
  limit: number
  after?: string | undefined
}

interface Wanted extends Window {
  type?: string | undefined
  lock?: string | undefined
  task_id?: string | undefined
  by?: string | undefined
}

const WINDOW = {
  since_seconds: field(() => s.optional(s.seconds(1, 365 * 86_400)), 'How far back to look.'),
  from: f.fromTime,
  to: f.toTime,
  limit: f.limit,
  after: f.after,
}
const onlyLock = field(() => s.optional(s.plain(512)), 'Only events of this lock.')
const onlyBy = field(
  () => s.optional(s.plain(256)),
  'Only events caused by this agent, or about what it held.',
  '--by-agent <agent>',
)

export const list = readOperation({
  name: 'event.list',
  refuses: ['invalid'],
  doc: 'Events, newest first: all of them, or those of a lock, a task, an agent or a time.',
  input: {
    type: field(
      () => s.optional(s.plain(256)),
      'Only events of this type (lease.expired), or of all types of a kind (run); or of several.',
      '--type <type,…>',
    ),
    lock: onlyLock,
    task_id: f.onlyTask,
    by: onlyBy,
    ...WINDOW,
  },
  output: answers.events,
  command: 'event list',
  lookup: (store, input, caller): Promise<EventsFound<ShownEvent>> =>
    walkBack(store, input, caller, soughtIn(input), (event) => {
      if (!isWanted(event, input)) return undefined
      const { hash: _, ...shown } = event
      return shown
    }),
  decide: (_view, _input, _caller, _ticket, found) => found!,
})

export const spans = readOperation({
  name: 'span.list',
  internal: true,
  refuses: ['invalid'],
  doc: 'Who held or waited for which lock, from when to when, and how it ended; newest end first.',
  input: { lock: onlyLock, by: onlyBy, ...WINDOW },
  output: answers.spans,
  lookup: async (store, input, caller) => {
    // What ends after the walk has begun is found by who asks again from here on.
    const walked_to = await newestTime(store, caller)
    // What has ended after `to` may have begun before it: the walk begins at the newest.
    const to = timeOf(input.to) ?? '~'
    const asked = { ...input, to: undefined }
    const walked = await walkBack(store, asked, caller, soughtIn(input), (event) => {
      const span = spanOf(event)
      return span && span.from <= to && isOf(span, input) ? span : undefined
    })
    return { ...walked, walked_to }
  },
  decide: (view, input, _caller, _ticket, found) => {
    const { items, next, walked_to } = found!
    const open = input.after === undefined ? [...openSpans(view)] : []
    const to = timeOf(input.to) ?? walked_to
    const isBefore = ({ from }: LockSpan) => input.to === undefined || from <= to
    const shown = [...open.filter((span) => isBefore(span) && isOf(span, input)), ...items]
    return {
      items: shown.map((span) => withWhose(view, span)),
      next,
      from: sinceOf(view.wall, input) || null,
      to,
    }
  },
})

const isOf = (
  { lock, agent }: LockSpan,
  wanted: { lock?: string | undefined; by?: string | undefined },
) =>
  !OWN.test(lock) &&
  (wanted.lock === undefined || lock === wanted.lock) &&
  (wanted.by === undefined || agent === wanted.by)

function* openSpans(view: View): Generator<LockSpan> {
  const lasts = { to: null, ending: 'open' as const }
  for (const lease of firstOf(view.scan('leases_by_expiry', ''), OPEN_MAX)) {
    const { name: lock, holder: agent, fence, acquired_at: from } = lease
    yield { kind: 'held', lock, agent, task: taskOf(lock) ?? null, fence, from, ...lasts }
  }
  for (const { names, agent, asked_at: from } of firstOf(view.scan('tickets', ''), OPEN_MAX)) {
    for (const lock of names) {
      yield { kind: 'waited', lock, agent, task: taskOf(lock) ?? null, fence: null, from, ...lasts }
    }
  }
}

function withWhose(view: View, span: LockSpan) {
  const { task, lock } = span
  const row = task === null ? undefined : view.get('task', task)
  return { ...span, user: row?.user ?? userOf(lock) ?? null, project: row?.project ?? null }
}

/** What stands in every event that `isWanted` may want, for stores to leave out the rest. */
function soughtIn({ type, lock, task_id, by }: Partial<Wanted>): Sought {
  const named = (name: string) => [...new Set([`"${name}"`, JSON.stringify(name)])]
  const types = type?.split(',').flatMap((each) => [`"${each}"`, `"${each}.`])
  const task = task_id === undefined ? undefined : [...named(task_id), ...named(lockOf(task_id))]
  const names = [lock, by].map((name) => (name === undefined ? undefined : named(name)))
  return [types, task, ...names].filter((words) => words !== undefined)
}

/** Positions have no gaps, so the past is read page by page from its end. */
async function walkBack<Item>(
  store: Store,
  wanted: Window,
  caller: Caller,
  sought: Sought,
  pick: (event: Event) => Item | undefined,
): Promise<EventsFound<Item>> {
  const { position: newest } = await store.head()
  const since = sinceOf(store.machine.wallMs(), wanted)
  const until = timeOf(wanted.to)
  const items: Item[] = []
  let end = wanted.after === undefined ? newest : Math.min(newest, positionIn(wanted.after) - 1)
  if (until !== undefined && wanted.after === undefined) end = await positionAt(store, until, end)
  let looked_to: string | null = null
  let bytes = 0
  const none = { items, next: null, looked_to: null }
  const [step, most] = sought.length > 0 ? [SOUGHT_PAGE, SOUGHT_MAX] : [PAGE, WALK_MAX]
  for (let walked = 0; end > 0 && walked < most; walked += step) {
    const begun_ms = performance.now()
    const begin = Math.max(0, end - step)
    const found = await store.events(begin, end - begin, sought)
    const [first] = sought.length > 0 ? await store.events(begin, 1) : found
    usedBy(caller)?.turn.spend(performance.now() - begun_ms)
    if (sought.length > 0) await othersTurn()
    // After pruning, later events are found in place of those that are gone: shown already.
    const page = found.filter(({ position }) => position <= end)
    const seen = await eventsSeen(store, page, caller)
    for (const event of seen.toReversed()) {
      if (event.at < since) return none
      if (until !== undefined && event.at > until) continue
      const item = pick(event)
      if (item === undefined) continue
      bytes += sizeOf(item)
      if (items.length === wanted.limit || (bytes > PAGE_BYTES && items.length > 0)) {
        return { items, next: String(event.position + 1), looked_to: event.at }
      }
      items.push(item)
    }
    // What is missing at the beginning of a page was pruned, and all before it too.
    if (first?.position !== begin + 1 || first.at < since) return none
    end = begin
    looked_to = (isScoped(caller) ? seen[0]?.at : first.at) ?? looked_to
  }
  return end > 0 ? { items, next: String(end + 1), looked_to } : none
}

/** Of the newest event that the caller may be told of; if that is long past, of now. */
async function newestTime(store: Store, caller: Caller): Promise<string> {
  const { position } = await store.head()
  const count = Math.min(position, isScoped(caller) ? PAGE : 1)
  const page = count > 0 ? await store.events(position - count, count) : []
  const newest = (await eventsSeen(store, page, caller)).at(-1)
  return newest?.at ?? store.read(({ at }) => at)
}

/** The newest event of `at` or before, by halving: times rise with positions. */
async function positionAt(store: Store, at: string, newest: number): Promise<number> {
  let [low, high] = [0, newest]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const [event] = await store.events(middle - 1, 1)
    // What was pruned is older than all that is left.
    if (!event || (event.position <= high && event.at > at)) high = middle - 1
    else low = middle
  }
  return low
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
    seen = store.read((view) => events.flatMap((event) => eventTold(view, event, caller) ?? []))
    known.set(whose, seen)
  }
  return seen
}

/** In the one spelling that times of events have, so that they compare as text. */
const timeOf = (time: string | undefined) =>
  time === undefined ? undefined : new Date(Date.parse(time)).toISOString()

function sinceOf(wall_ms: number, { since_seconds, from }: Window): string {
  const given = timeOf(from)
  if (given !== undefined || since_seconds === undefined) return given ?? ''
  return new Date(wall_ms - since_seconds * 1000).toISOString()
}

function isWanted(event: Event, { type, lock, task_id, by }: Wanted): boolean {
  if (type !== undefined && !isOfType(event, type)) return false
  if (by !== undefined && !isAbout(event, by)) return false
  if (task_id !== undefined && event.task !== task_id && event.lock !== `task:${task_id}`) {
    return false
  }
  if (lock === undefined || event.lock === lock) return true
  return factsOf(event).names?.includes(lock) ?? false
}

const isOfType = (event: Event, types: string) =>
  types.split(',').some((each) => event.type === each || nounOf(event) === each)

/** Caused by the agent, or about what it had: another may have ended that. */
function isAbout(event: Event, agent: string): boolean {
  if (event.agent === agent || factsOf(event).holder === agent) return true
  return event.type === 'lease.handed_off' && (event.data.from === agent || event.data.to === agent)
}

/** The event in front of which to go on. */
function positionIn(after: string): number {
  if (/^\d{1,15}$/.test(after)) return Number(after)
  throw new Refusal('invalid', 'after is not the `next` of a page', {
    next: 'Leave it out to begin at the newest event.',
  })
}
