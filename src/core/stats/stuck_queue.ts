import type { DispatcherRow, Lane, Limit, Share } from '../schema/queue.ts'
import type { Caller } from '../caller.ts'
import { slotsUsed } from '../queue/dispatch.ts'
import { hasRoom, POOL, unserved } from '../queue/limit.ts'
import { busyWith, isBusy, maxOf, queueOf, shareOf, userLock } from '../queue/share.ts'
import { liveDispatchers } from '../queue/status.ts'
import { lockOf, taskOf } from '../locks/lease.ts'
import { liveLease } from '../locks/standing.ts'
import { argument, word } from '../quote.ts'
import { explainTask } from '../tasks/explain.ts'
import type { View } from '../view.ts'
import {
  about,
  type Cause,
  type CauseKind,
  causeOf,
  firstRows,
  lasted,
  many,
  type Remedy,
} from './cause.ts'

/** Users whose queues are looked at, and lanes of each: a bound on what one look costs. */
const USERS_MAX = 100
const LANES_MAX = 50
const LIMITS_MAX = 1_000
/** A run that has not begun after so long waits for something. */
const BEGIN_MS = 60_000

/** Tasks that wait for the same thing. */
interface Heap {
  kind: CauseKind
  /** What they wait for: a limit, or nothing to be named. */
  key: string
  tasks: number
  users: Set<string>
  projects: Set<string>
  /** The task that stands first among them: `explain` says why it waits. */
  head: { task: string; rank: number } | undefined
}

interface Queues {
  dispatchers: DispatcherRow[]
  free: number
  slots: number
  /** More wait than were counted. */
  at_least: boolean
}

/** What keeps enqueued tasks from being started, from lanes and counters: no task is searched. */
export function queueCauses(view: View, caller: Caller): Cause[] {
  const dispatchers = liveDispatchers(view)
  const slots = dispatchers.reduce((sum, { slots_max }) => sum + slots_max, 0)
  const used = dispatchers.reduce((sum, { id }) => sum + slotsUsed(view, id), 0)
  const found = sharesLooked(view, caller)
  const queues = { dispatchers, slots, free: Math.max(0, slots - used), at_least: found.more }
  const heaps = new Map<string, Heap>()
  for (const share of found.rows) heapUp(view, share, queues, heaps)
  if (found.more) addUnserved(view, queues, heaps)
  // Said also when nothing waits: whoever adds a task now would wonder.
  if (queueOf(view).paused) heapOf(heaps, 'paused', '')
  const causes = [...heaps.values()].map((heap) => causeFor(view, heap, queues, caller))
  return [...causes, ...unbegunCauses(view, dispatchers, caller)]
}

/** Runs that have a slot and do not begin: git hangs in their repository, say. */
function unbegunCauses(view: View, dispatchers: DispatcherRow[], caller: Caller): Cause[] {
  const open = dispatchers.flatMap(({ id }) => [...view.scan('runs_dispatched_by', id)])
  const late = open.flatMap(({ begun_at, task_id, started_at }) => {
    const lease = begun_at === null ? liveLease(view, lockOf(task_id)) : undefined
    const waits_ms = lease ? view.now - lease.acquired_ms : 0
    return waits_ms < BEGIN_MS ? [] : [{ task_id, started_at, waits_ms }]
  })
  const [first] = late.toSorted((a, b) => b.waits_ms - a.waits_ms)
  if (!first) return []
  const what = late.length === 1 ? '1 run has' : `${late.length} runs have`
  return [
    causeOf({
      id: 'unbegun:',
      kind: 'unbegun',
      severity: 'warn',
      what: `${what} not begun, the longest for ${lasted(first.waits_ms)}`,
      why: explainTask(view, first.task_id, caller.agent).sentence,
      next: 'See what git waits for there (a filter, a disk), and end that program.',
      since: first.started_at,
      tasks: late.length,
      about: about(
        'task',
        late.map(({ task_id }) => task_id),
      ),
    }),
  ]
}

function sharesLooked(view: View, { scope }: Caller): { rows: Share[]; more: boolean } {
  if (!Array.isArray(scope?.users)) return firstRows(view.scan('shares_waiting', ''), USERS_MAX)
  return { rows: scope.users.map((user) => shareOf(view, user)), more: false }
}

function heapOf(heaps: Map<string, Heap>, kind: CauseKind, key: string): Heap {
  const id = `${kind}:${key}`
  const heap = heaps.get(id)
  if (heap) return heap
  const made = { kind, key, tasks: 0, users: new Set<string>(), projects: new Set<string>() }
  heaps.set(id, { ...made, head: undefined })
  return heaps.get(id)!
}

/** Puts the ready tasks of a user to those that wait for the same, lane by lane. */
function heapUp(view: View, share: Share, queues: Queues, heaps: Map<string, Heap>): void {
  const open = firstRows(view.scan('lanes_of', share.user), LANES_MAX)
  for (const lane of open.rows) add(heaps, whyOpen(view, share, lane, queues), lane)
  for (const parking of firstRows(view.scan('parkings_of', share.user), LANES_MAX).rows) {
    const limit = view.get('limit', parking.limit)
    const parked = firstRows(view.scan('lanes_parked_at', parking.key), LANES_MAX)
    for (const lane of parked.rows) {
      add(heaps, whyParked(limit) ?? whyOpen(view, share, lane, queues), lane)
    }
  }
  function whyParked(limit: Limit | undefined): Why {
    if (!limit || hasRoom(limit) || whyNobody(view, queues)) return undefined
    if (limit.key.startsWith(unserved('')))
      return whyUnserved(limit.key.slice(unserved('').length), queues)
    return [limit.paused ? 'paused' : 'limit_full', limit.key]
  }
}

type Why = [CauseKind, string] | undefined

/** What keeps everybody's tasks. */
function whyNobody(view: View, { dispatchers }: Queues): Why {
  if (queueOf(view).paused) return ['paused', '']
  return dispatchers.length === 0 ? ['no_dispatcher', ''] : undefined
}

function whyUnserved(project: string, { dispatchers }: Queues): Why {
  if (dispatchers.some(({ projects }) => projects.includes(project))) return undefined
  const isBare = dispatchers.every(({ projects }) => projects.length === 0)
  return isBare ? ['no_project', ''] : ['unserved', project]
}

/** Why a lane that no limit keeps is not started; undefined: it is about to be. */
function whyOpen(view: View, share: Share, lane: Lane, queues: Queues): Why {
  const whole = whyNobody(view, queues) ?? whyUnserved(lane.project ?? '', queues)
  if (whole) return whole
  if (share.paused) return ['paused', userLock(share.user)]
  if (isBusy(view, share)) return ['user_busy', '']
  return queues.free === 0 ? ['no_slot', ''] : undefined
}

function add(heaps: Map<string, Heap>, why: Why, lane: Lane): void {
  if (!why) return
  const heap = heapOf(heaps, ...why)
  heap.tasks += lane.ready
  heap.users.add(lane.user)
  heap.projects.add(lane.project ?? '')
  const { head_task, head_rank } = lane
  if (head_task === null || head_rank === null) return
  if (!heap.head || head_rank < heap.head.rank) heap.head = { task: head_task, rank: head_rank }
}

/** Among very many users, a project that nobody serves is still found: its counter says so. */
function addUnserved(view: View, queues: Queues, heaps: Map<string, Heap>): void {
  const from = { order: unserved(''), key: '' }
  for (const { key, parked } of firstRows(view.scan('limits', '', from), LIMITS_MAX).rows) {
    const why = parked > 0 ? whyUnserved(key.slice(9), queues) : undefined
    if (!why || whyNobody(view, queues)) continue
    const heap = heapOf(heaps, ...why)
    heap.tasks = Math.max(heap.tasks, parked)
    heap.projects.add(key.slice(9))
  }
}

function causeFor(view: View, heap: Heap, queues: Queues, caller: Caller): Cause {
  const { kind, key, tasks, head } = heap
  const task = head && view.get('task', head.task)
  const said = task && explainTask(view, task.id, caller.agent)
  const at_least = queues.at_least
  const words = { why: said?.sentence ?? '', next: said?.actions[0]?.says ?? '' }
  const since = task?.updated_at ?? null
  const common = { id: `${kind}:${key}`, kind, tasks, at_least, since, ...words }
  const rest = WORDS[kind]!(view, heap, queues, many(tasks, 'task', 'wait', at_least))
  const things = [
    ...(rest.about ?? about('user', heap.users)),
    ...about('task', task ? [task.id] : []),
  ]
  return causeOf({ ...common, ...rest, about: things, next: rest.next ?? words.next })
}

type Words = Pick<Cause, 'severity' | 'what'> & Partial<Cause>

/** What each kind says, and what can be done about it. */
const WORDS: {
  [K in CauseKind]?: (view: View, heap: Heap, queues: Queues, waits: string) => Words
} = {
  paused: (_view, { key, tasks, users }, _queues, waits) => {
    const whole = key === ''
    const [kind = '', name = ''] = key.split(/:(.*)/s)
    const what = whole ? 'The whole queue' : `The queue of ${kind} ${word(name)}`
    const input = whole ? {} : { [kind]: name }
    const actions = [admin('Resume', 'queue.resume', input)]
    const flag = whole ? '' : ` --${kind} ${argument(name)}`
    return {
      severity: whole && tasks > 0 ? 'bad' : 'warn',
      what: tasks === 0 ? `${what} is paused` : `${what} is paused: ${waits}`,
      next: `Let it go on: leasehold queue resume${flag}`,
      about: kind === 'project' ? about('project', [name]) : about('user', users),
      actions,
    }
  },
  no_dispatcher: (view, { users }, _queues, waits) => ({
    severity: 'bad',
    what: `${waits} for a dispatcher, and none is running`,
    since: lastDispatcher(view),
    about: about('user', users),
  }),
  no_project: (_view, { projects }, _queues, waits) => ({
    severity: 'bad',
    what: `${waits}, and no project is configured`,
    about: about('project', projects),
  }),
  unserved: (_view, { key }, _queues, waits) => ({
    severity: 'bad',
    what: `${waits} because no dispatcher serves project ${word(key)}`,
    about: about('project', [key]),
  }),
  user_busy: userBusy,
  limit_full: (view, { key, users }, { free }, waits) => {
    const limit = view.get('limit', key)!
    const [kind, name] = key === POOL ? [POOL, ''] : (key.split(/:(.*)/s) as [string, string])
    const max = (limit.max ?? 0) + 1
    const input = kind === POOL ? { max } : { [kind]: name, max }
    const of = kind === POOL ? 'the pool' : word(name)
    const flag = kind === POOL ? '' : ` --${kind} ${argument(name)}`
    return {
      severity: 'info',
      what: `${slotsFree(free)}${waits} for ${of} (${limit.used} of ${limit.max})`,
      next: `Wait, or raise the limit: leasehold queue limit${flag} --max ${max}`,
      about: [...about('limit', [key]), ...about('user', users)],
      actions: [admin(`Let ${max} run at once`, 'queue.limit', input)],
    }
  },
  no_slot: (_view, _heap, { slots }, waits) => ({
    severity: 'info',
    what: `${waits} for a free slot: all ${slots} are in use`,
    next: 'Wait, or raise slots.max in config.json.',
  }),
}

const slotsFree = (free: number) =>
  free === 0 ? '' : `${free} ${free === 1 ? 'slot is' : 'slots are'} free, but `

const admin = (says: string, operation: string, input: Remedy['input']): Remedy => ({
  says,
  operation,
  input,
  admin: true,
})

function userBusy(view: View, { users }: Heap, { free }: Queues, waits: string): Words {
  const locks = [...users].flatMap((user) => busyWith(view, userLock(user)) ?? [])
  const tasks = locks.flatMap((lock) => taskOf(lock) ?? [])
  const starts = locks.flatMap((lock) => view.get('lease', lock)?.acquired_at ?? [])
  const raise = [...users].map((user) => {
    const max = (maxOf(view, shareOf(view, user)) ?? 0) + 1
    return admin(`Let ${word(user)} have ${max} at once`, 'queue.limit', { user, max })
  })
  const cancel = tasks.map((id) => {
    return { says: `Cancel task ${id}`, operation: 'queue.cancel', input: { id }, admin: false }
  })
  const whose = users.size === 1 ? `user ${word([...users][0]!)}` : 'their user'
  return {
    severity: 'info',
    what: `${slotsFree(free)}${waits} for ${whose}`,
    since: starts.toSorted()[0] ?? null,
    next: tasks[0] === undefined ? 'Wait.' : `Wait, or: leasehold queue cancel ${tasks[0]}`,
    about: [...about('task', tasks), ...about('user', users)],
    actions: [...cancel.slice(0, 3), ...raise.slice(0, 3)],
  }
}

/** When the last dispatcher stopped, where that is known. */
function lastDispatcher(view: View): string | null {
  const ends = [...view.scan('dispatchers', '')].flatMap(({ id }) => {
    return view.get('lease', id)?.ended_at ?? []
  })
  return ends.toSorted().at(-1) ?? null
}
