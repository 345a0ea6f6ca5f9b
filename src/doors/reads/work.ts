import type { ShownLease, ShownStatus } from '../../operations/locks.ts'
import type { ShownCheck, ShownReservation } from '../../operations/reservations.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { type SheetFact, pageTable, type Pen, type Readings, span } from './pen.ts'

type ShownTask = AnswerOf<'task.get'>

const listed = <T>(pen: Pen, verb: string, items: readonly T[], of: (item: T) => string) =>
  items.map((each) => `${pen.did(verb)} ${of(each)}`).join('\n')

const NO_LOCK = {
  says: 'No lock is held. Take one',
  operation: 'lock.acquire',
  input: { names: ['NAME'] },
}
const NO_TASK = {
  says: 'No tasks here. Add one',
  operation: 'task.create',
  input: { title: 'Fix the login test' },
}

/** A search that was bounded says how far it has looked. */
const nothingFound = ({ next, looked_to }: AnswerOf<'event.list'>, pen: Pen) =>
  next && looked_to
    ? `Nothing back to ${pen.time(looked_to)}; there is more.`
    : 'Nothing has happened.'

/** Locks, tasks and reservations. */
export const WORK: Readings = {
  'lock.acquire': (got, pen) =>
    listed(pen, 'acquired', 'items' in got ? got.items : [got], (lease) => {
      const fence = pen.strong(lease.fence)
      return `${lease.name} for ${lease.holder}, fence ${fence}, ${untilOf(pen, lease)}`
    }),
  'lock.renew': (lease, pen) => `${pen.did('renewed')} ${lease.name} ${untilOf(pen, lease)}`,
  'lock.release': (was, pen) =>
    listed(pen, 'released', 'items' in was ? was.items : [was], ({ name }) => name),
  'lock.force_release': (was, pen) =>
    `${pen.undid('force-released')} ${was.name}, which ${was.holder} held`,
  'lock.hand_off': ({ name, holder, fence }, pen) =>
    `${pen.did('handed')} ${name} to ${holder}, fence ${pen.strong(fence)}`,
  'lock.status': lockStatus,
  'lock.list': (page, pen) =>
    pageTable(pen, page, NO_LOCK, {
      LOCK: 'name',
      HOLDER: 'holder',
      FENCE: 'fence',
      PID: 'pid',
      'EXPIRES IN': ({ expires_in_seconds }) => span(expires_in_seconds),
    }),
  'lock.explain': explained,
  'lock.waiters': (page, pen) =>
    pageTable(pen, page, 'Nobody waits for a lock.', {
      AGENT: 'agent',
      'WAITS FOR': 'names',
      P: 'priority',
      SINCE: ({ asked_at }) => pen.time(asked_at),
    }),
  'agent.heartbeat': ({ items }, pen) =>
    items.length === 0 ? 'nothing to renew' : listed(pen, 'renewed', items, ({ name }) => name),
  'agent.list': (page, pen) =>
    pageTable(pen, page, 'No agent has been here yet.', {
      AGENT: 'id',
      KIND: 'kind',
      HOST: 'host',
      'LAST SEEN': ({ last_seen_at }) => pen.time(last_seen_at),
      HOLDS: 'holds',
    }),
  'event.list': (page, pen) =>
    pageTable(pen, page, nothingFound(page, pen), {
      AT: ({ at }) => pen.time(at),
      EVENT: 'type',
      AGENT: 'agent',
      'LOCK OR TASK': ({ lock, task }) => lock ?? task,
    }),
  'task.create': (task, pen) => `${pen.did('added')} task ${pen.strong(task.id)}: ${task.title}`,
  'task.get': taskSheet,
  'task.list': (page, pen) =>
    pageTable(pen, page, NO_TASK, {
      ID: 'id',
      STATUS: ({ status }) => coloured(pen, status),
      P: 'priority',
      PROJECT: 'project',
      ASSIGNEE: 'assignee',
      TITLE: 'title',
    }),
  'task.claim': ({ claims, ...one }, pen) =>
    (claims?.length ? claims : [one]).map((each) => claimed(each, pen)).join('\n'),
  'task.status': claimed,
  'task.update': (task, pen) =>
    `${pen.did('changed')} task ${task.id}, now version ${task.version}`,
  'task.explain': explained,
  'reserve.add': ({ items, warnings }, pen) =>
    [
      ...items.map((each) => reserved(each, pen)),
      ...warnings.map((each) => warning(each, pen)),
    ].join('\n'),
  'reserve.release': ({ items }, pen) =>
    items.length === 0
      ? 'nothing was reserved here'
      : listed(pen, 'released', items, ({ path }) => path ?? ''),
  'reserve.list': (page, pen) =>
    pageTable(pen, page, 'Nothing is reserved. Reserve paths: leasehold reserve add "src/**"', {
      PATHS: 'path',
      HOLDER: 'holder',
      SHARED: ({ shared }) => (shared ? 'shared' : ''),
      PID: 'pid',
      'EXPIRES IN': ({ expires_in_seconds }) => span(expires_in_seconds),
      CHECKOUT: ({ checkout, project }) => checkout ?? `all of ${project ?? 'them'}`,
      REASON: 'reason',
    }),
  'reserve.ask': ({ items }, pen) =>
    items
      .map((each) => {
        const { path, state, told } = each
        if (told && state !== 'free') return `${pen.did('asked')} ${each.holder} for ${path}`
        return `${path} is ${state === 'held' ? 'held by an agent that cannot be asked' : state}`
      })
      .join('\n'),
  'reserve.check': ({ items }, pen) => items.map((each) => checked(each, pen)).join('\n'),
}

export const warning = (sentence: string, pen: Pen) => `${pen.undid('warning')} ${sentence}`

const untilOf = (pen: Pen, { expires_at, expires_in_seconds }: ShownLease) =>
  `until ${pen.time(expires_at)} (${span(expires_in_seconds)})`

function explained({ sentence, next }: { sentence: string; next: string }, pen: Pen): string {
  return pen.sentence(sentence) + (next && pen.dim(`\n  next: ${next}`))
}

function lockStatus(status: ShownStatus, pen: Pen): string {
  const pid = status.pid === undefined ? '' : ` (PID: ${status.pid})`
  const left = span(status.expires_in_seconds ?? 0)
  const task = status.task_id === undefined ? '' : ` for task ${status.task_id}`
  const lines = status.is_locked
    ? [
        `${status.name} is ${pen.warn('held')} by ${status.lock_holder}${pid}${task}`,
        `  fence ${status.fence}, expires in ${left} (${pen.time(status.lock_expires_at)})`,
      ]
    : [`${status.name} is ${pen.good('free')}`]
  for (const waiter of status.waiters) {
    lines.push(`  ${waiter.position}. ${waiter.agent} waits since ${pen.time(waiter.asked_at)}`)
  }
  return lines.join('\n')
}

const COLOURS: Record<string, 'warn' | 'good' | 'bad' | 'dim' | 'strong' | undefined> = {
  todo: undefined,
  in_progress: 'warn',
  review: 'strong',
  done: 'good',
  failed: 'bad',
  cancelled: 'dim',
}

function coloured(pen: Pen, status: string): string {
  const colour = COLOURS[status]
  return colour ? pen[colour](status) : status
}

/** How an enqueued task is run, and what went wrong so far. */
function queueFacts(queue: ShownTask['queue']): SheetFact[] {
  if (!queue) return []
  const { agent_command, time_limit_seconds, retries, failed, lost } = queue
  const wrong = [failed > 0 && `failed ${failed}`, lost > 0 && `lost ${lost}`].filter(Boolean)
  return [
    ['enqueued', `for ${agent_command ?? "the project's agent"}`],
    ['time limit', time_limit_seconds === null ? null : span(Math.round(time_limit_seconds))],
    ['retries', retries === 0 ? null : retries],
    ['runs', wrong.join(', ')],
  ]
}

/** What has become of it so far: an agent that is to work on it does without. */
const history = (task: ShownTask, pen: Pen): SheetFact[] => [
  ['attempts', task.attempts],
  ...queueFacts(task.queue),
  ['created', `${pen.time(task.created_at)} by ${task.created_by}`],
  ['updated', pen.time(task.updated_at)],
]

/** A task, whole; for a tool's answer or a resource, too. */
function taskSheet(task: ShownTask, pen: Pen): string {
  const facts: SheetFact[] = [
    ['status', coloured(pen, task.status)],
    ['version', task.version],
    ['priority', task.priority],
    ['project', task.project],
    ['user', task.user],
    ['group', task.group],
    ['labels', task.labels.join(', ')],
    ['depends on', task.depends_on.join(', ')],
    ['touches', task.touches.join(', ')],
    ['assigned to', task.assigned_to],
    ['assignee', task.assignee],
    ['lock until', pen.time(task.lock_until)],
    ...(pen.isTool ? [] : history(task, pen)),
    ['metadata', Object.keys(task.metadata).length > 0 ? JSON.stringify(task.metadata) : null],
  ]
  const head = pen.strong(`${task.id}  ${task.title}`)
  const body = task.body ? [pen.isTool ? [] : '', pen.body('task', task.body)].flat() : []
  return [head, ...pen.facts(facts), ...body].join('\n')
}

function claimed(claim: AnswerOf<'task.status'>, pen: Pen): string {
  const { task, lease, run, note } = claim
  if (note !== undefined) return note
  if (!task) {
    const list = pen.call({ operation: 'task.list', input: {} })
    const explain = pen.call({ operation: 'task.explain', input: { id: 'ID' } })
    return `Nothing is ready. See why: ${list}, ${explain}`
  }
  if (!lease) return `task ${task.id} is now ${coloured(pen, task.status)}`
  const times = `fence ${pen.strong(lease.fence)}, until ${pen.time(lease.expires_at)}`
  if (!run) return `task ${task.id} is now ${coloured(pen, task.status)}; its lock stays: ${times}`
  const { name, fence, expires_in_seconds } = lease
  const renew = pen.call({ operation: 'lock.renew', input: { name, fence } })
  return [
    `${pen.did('claimed')} task ${pen.strong(task.id)} (${task.title}) as run ${run.id}, ${times}`,
    pen.dim(`  yours for ${span(expires_in_seconds)}; to keep it longer: ${renew}`),
    ...(pen.isTool ? [taskSheet(task, pen)] : []),
  ].join('\n')
}

function reserved(each: ShownReservation, pen: Pen): string {
  const how = pen.did(each.shared ? 'sharing' : 'reserved')
  const fence = pen.strong(each.fence)
  return `${how} ${each.path} for ${each.holder}, fence ${fence}, ${untilOf(pen, each)}`
}

function checked(each: ShownCheck, pen: Pen): string {
  if (each.state === 'free') return `${pen.good('free')}  ${each.path}`
  const { state, path, holder, reserved: glob, expires_in_seconds, reason } = each
  const why = reason ? `: ${reason}` : ''
  const by = `${glob}, reserved by ${holder} for ${span(expires_in_seconds)} more${why}`
  return `${state === 'mine' ? pen.good('mine') : pen.warn('held')}  ${path}  (${by})`
}
