import type { CallToolResult } from '@modelcontextprotocol/server'
import { quoted, word } from '../../core/quote.ts'
import type { QueueStatus } from '../../core/queue/status.ts'
import { byName, inWordsOf, type Say } from '../../core/next.ts'
import { Refusal } from '../../core/refusal.ts'
import { asCommand } from '../../operations/command.ts'
import type { ShownLease, ShownStatus } from '../../operations/locks.ts'
import {
  type AnswerOf,
  type ByAnswer,
  operationNamed,
  type RegisteredName,
} from '../../operations/registry.ts'
import type { ShownClaim } from '../../operations/tasks.ts'
import { broken } from '../broken.ts'
import { MEMORY_SHORT, MEMORY_WORDS, SEARCH_SHORT, SEARCH_WORDS } from './memory_answers.ts'
import { spelled } from './tools.ts'
import { TRUST, untrusted } from './untrusted.ts'

type Shape = Record<string, unknown>
type ShownTask = AnswerOf<'task.get'>

/** A result for a model: a few lines to read, and the same as data without what says nothing. */
export function answerOf(operation: string, answer: object): CallToolResult {
  const result = inWordsOf(answer, byTool)
  const structuredContent = { ...TRUST, ...shortened(operation, result as Shape) }
  const words: ((result: never) => string) | undefined = WORDS[operation as RegisteredName]
  const text = words?.(result as never) ?? JSON.stringify(structuredContent)
  return { content: [{ type: 'text', text }], structuredContent }
}

/** What happened, why, what to do next: as text and as data. Our own bugs are not described. */
export function refusalAnswer(error: unknown): CallToolResult {
  const refusal = error instanceof Refusal ? error : broken(error)
  const { code, message, next, details } = refusal.inWords(byTool).error
  const structuredContent = { ...TRUST, error: { code, message, next, details } }
  const text = `Refused (${code}): ${message}${next && `\nNext: ${next}`}`
  return { isError: true, content: [{ type: 'text', text }], structuredContent }
}

/** What no tool does is a command for a person. */
const byTool: Say = (call) => {
  const operation = operationNamed.get(call.operation)
  if (operation?.tool === undefined) return asCommand(call)
  const given = Object.entries(call.input).map(([name, each]) => [spelled(name, operation), each])
  return byName({ operation: operation.tool, input: Object.fromEntries(given) })
}

const TASK_ITEM = ['id', 'title', 'status', 'priority', 'project', 'assignee'] as const
const TASK_BRIEF = ['id', 'title', 'status', 'version', 'priority'] as const
const LEASE_ITEM = ['name', 'holder', 'fence', 'expires_in_seconds'] as const
const RUN_BRIEF = ['id', 'status'] as const

/** What a tool shows of each answer; the rest is shown when that one thing is asked for. */
const SHORT: ByAnswer<Shape> = {
  ...MEMORY_SHORT,
  ...SEARCH_SHORT,
  'task.list': (list) => brief(list, { items: TASK_ITEM }),
  'lock.list': (list) => brief(list, { items: LEASE_ITEM }),
  'agent.heartbeat': (list) => brief(list, { items: LEASE_ITEM }),
  'task.claim': ({ claims, ...one }) => ({
    ...claimBrief(one),
    ...(claims && { claims: claims.map(claimBrief) }),
  }),
  'task.status': (claim) => brief(claim, { task: TASK_BRIEF, run: RUN_BRIEF }),
  'queue.add': (added) => brief(added, { task: ['id', 'status'] }),
  'reserve.add': (list) => brief(list, { items: ['path', 'fence', 'expires_at', 'shared'] }),
  'reserve.release': (list) => brief(list, { items: ['path', 'fence', 'released'] }),
  'land.add': (landing) => only(['id', 'target', 'branch', 'status', 'position'], landing),
  'task.create': (task) => only(TASK_BRIEF, task),
  'task.update': (task) => only(TASK_BRIEF, task),
  'queue.cancel': (task) => only(TASK_BRIEF, task),
  'task.get': withoutEmpty,
  'task.explain': ({ actions: _, ...said }) => said,
  'lock.explain': ({ actions: _, ...said }) => said,
  'queue.status': queueBrief,
  'stuck.get': (stuck) =>
    brief(stuck, { items: ['kind', 'severity', 'what', 'tasks', 'agents', 'about'] }),
}

const claimBrief = (claim: ShownClaim) => brief(claim, { run: RUN_BRIEF })

function shortened(operation: string, result: Shape): Shape {
  const short: ((result: never) => Shape) | undefined = SHORT[operation as RegisteredName]
  return short ? short(result as never) : brief(result)
}

/** Names of fields that a part of an answer has, or each item of a part that is a list. */
type FieldsIn<Part> = readonly (keyof NonNullable<Part extends readonly (infer I)[] ? I : Part>)[]

/** An answer with these fields only of its parts; of the other parts, all that is not empty. */
function brief<A extends object>(
  answer: A,
  parts: { [P in keyof A]?: FieldsIn<A[P]> } = {},
): Shape {
  const told = parts as Record<string, readonly string[] | undefined>
  const shown = Object.entries(answer).map(([name, part]) => [name, partOf(part, told[name])])
  return Object.fromEntries(shown) as Shape
}

function partOf(value: unknown, fields: readonly string[] | undefined): unknown {
  if (Array.isArray(value)) return fields ? value.map((item) => partOf(item, fields)) : value
  if (typeof value !== 'object' || value === null) return value
  return withoutEmpty(fields ? only(fields, value as Shape) : value)
}

function only<Item extends object>(fields: readonly (keyof Item & string)[], item: Item): Shape {
  return Object.fromEntries(fields.map((name) => [name, item[name]]))
}

/** Fields inside that are null or empty say nothing, and a model would read them all. */
function withoutEmpty(value: object): Shape {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => !isEmpty(each)))
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object') return value === '' || value === undefined
  return value === null || Object.keys(value).length === 0
}

const WORDS: ByAnswer<string> = {
  ...MEMORY_WORDS,
  ...SEARCH_WORDS,
  'lock.acquire': (got) =>
    ('items' in got ? got.items : [got]).map((lease) => `Acquired ${leaseLine(lease)}`).join('\n'),
  'lock.renew': (lease) => `Renewed ${leaseLine(lease)}`,
  'lock.release': (was) =>
    ('items' in was ? was.items : [was]).map(({ name }) => `Released ${word(name)}`).join('\n'),
  'lock.hand_off': (lease) => `Handed to ${word(lease.holder)}: ${leaseLine(lease)}`,
  'lock.status': lockStatus,
  'lock.list': ({ items, next }) => lines(items.map(leaseItem), 'No lock is held.', next),
  'lock.explain': explained,
  'task.create': (task) => `Added task ${task.id}`,
  'task.get': taskSheet,
  'task.list': ({ items, next }) => lines(items.map(taskItem), 'No such tasks.', next),
  'task.claim': ({ claims, ...one }) => (claims?.length ? claims : [one]).map(claimed).join('\n\n'),
  'task.status': moved,
  'task.update': (task) => `Changed task ${task.id}, now version ${task.version}`,
  'task.explain': explained,
  'stuck.get': ({ items, more }) =>
    lines(
      [...items.map(causeLines), ...(more > 0 ? [`and ${more} more`] : [])],
      'Nothing is stuck.',
      null,
    ),
  'queue.add': ({ task, position, warnings }) =>
    [
      `Enqueued task ${task.id}, number ${position} in the queue of ${word(task.user ?? '')}`,
      ...warnings.map((each) => `Warning: ${each}`),
    ].join('\n'),
  'land.add': ({ note }) => note,
  'queue.cancel': (task) => `Cancelled task ${task.id}`,
  'queue.status': queueLines,
  'reserve.add': ({ items, warnings }) =>
    [
      ...items.map(({ path, expires_at }) => `Reserved ${word(path)} until ${expires_at}`),
      ...warnings.map((each) => `Warning: ${each}`),
    ].join('\n'),
  'reserve.ask': ({ items }) =>
    items
      .map((each) => {
        const { path, state, told } = each
        if (told && state !== 'free') return `Asked ${word(each.holder)} for ${word(path)}`
        return `${word(path)} is ${state}: nobody was asked`
      })
      .join('\n'),
  'reserve.release': ({ items }) =>
    lines(
      items.map(({ path }) => `Released ${word(path ?? '')}`),
      'Nothing was reserved.',
      null,
    ),
  'agent.heartbeat': ({ items }) => lines(items.map(leaseItem), 'Nothing to renew.', null),
}

function explained({ sentence, next }: AnswerOf<'task.explain'>): string {
  return next === '' ? sentence : `${sentence}\nNext: ${next}`
}

function causeLines({ what, why, next }: AnswerOf<'stuck.get'>['items'][number]): string {
  const rest = [why, next && `Next: ${next}`].filter((each) => each && each !== what)
  return [what, ...rest].join('\n  ')
}

const lines = (items: string[], none: string, next: string | null) =>
  [...(items.length > 0 ? items : [none]), ...(next ? [`more: after=${next}`] : [])].join('\n')

const leaseLine = ({ name, fence, expires_at }: ShownLease) =>
  `${word(name)}, fence ${fence}, until ${expires_at}`

const leaseItem = ({ name, holder, fence, expires_in_seconds }: ShownLease) =>
  `${word(name)} held by ${word(holder)}, fence ${fence}, ${expires_in_seconds}s left`

function lockStatus(status: ShownStatus): string {
  const waiters = status.waiters.length > 0 ? `; ${status.waiters.length} waiting` : ''
  if (!status.is_locked) return `${word(status.name)} is free${waiters}`
  const { name, lock_holder, fence, lock_expires_at } = status
  const held = `${word(name)} is held by ${word(lock_holder ?? '')}`
  return `${held}, fence ${fence}, until ${lock_expires_at}${waiters}`
}

/** How many users are named; the rest is in the totals. */
const USERS_SHOWN = 10

const few = (by: Record<string, number>) =>
  Object.fromEntries(Object.entries(by).slice(0, USERS_SHOWN))

/** How full the queue is and who is busy; which dispatcher does what is for people. */
function queueBrief({ paused, pending, active, user_locks }: QueueStatus): Shape {
  const details = user_locks.details.slice(0, USERS_SHOWN)
  return {
    ...(paused && { paused }),
    pending: withoutEmpty({ ...pending, by_user: few(pending.by_user) }),
    active: withoutEmpty({ ...active, by_user: few(active.by_user) }),
    user_locks: {
      active: user_locks.active,
      details: details.map(({ user, task_id }) => ({ user, task_id })),
    },
  }
}

function queueLines({ paused, pending, active, user_locks, dispatchers }: QueueStatus): string {
  const of = (by: Record<string, number>) => {
    const users = Object.entries(by).slice(0, USERS_SHOWN)
    const more = Object.keys(by).length > USERS_SHOWN ? ', …' : ''
    return users.length > 0
      ? `: ${users.map(([user, n]) => `${word(user)} ${n}`).join(', ')}${more}`
      : ''
  }
  const slots = `${active.slots_used} of ${active.slots_max} slots`
  const busy = user_locks.details.slice(0, USERS_SHOWN).map(({ user, task_id }) => {
    const what = task_id === null ? 'a lock taken by hand' : `task ${task_id}`
    return `${word(user)} is busy with ${what}`
  })
  return [
    `${pending.total} waiting (${pending.high} high)${of(pending.by_user)}`,
    `running${of(active.by_project) || ': nothing'} (${slots})`,
    ...(dispatchers.length === 0 ? ['No dispatcher runs.'] : []),
    ...(paused ? ['The queue is paused.'] : []),
    ...busy,
  ].join('\n')
}

const TITLE_SHOWN = 60

/** Titles stand in quotation marks: whatever they say is no line of ours. */
function taskItem({ id, status, priority, project, assignee, title }: ShownTask): string {
  const short = title.length > TITLE_SHOWN ? `${title.slice(0, TITLE_SHOWN - 1)}…` : title
  const whose = [project && word(project), assignee && `@${word(assignee)}`]
  const facts = [id, status, `p${priority}`, ...whose]
  return `${facts.filter(Boolean).join(' ')} ${quoted(short)}`
}

function claimed({ task, lease }: ShownClaim): string {
  if (!task || !lease) return 'Nothing is ready to be claimed. See list_tasks, or explain a task.'
  return `Claimed ${leaseLine(lease)}; to keep it longer: renew_lock\n${taskSheet(task)}`
}

function moved({ task, lease, note }: AnswerOf<'task.status'>): string {
  if (note !== undefined) return note
  const now = `Task ${task?.id} is now ${task?.status}`
  return lease ? `${now}: ${leaseLine(lease)}` : now
}

const FACTS = [
  'project',
  'user',
  'group',
  'labels',
  'depends_on',
  'touches',
  'assignee',
  'lock_until',
] as const

/** A task, whole, for a tool's answer or a resource. */
export function taskSheet(task: ShownTask): string {
  const facts = FACTS.filter((name) => !isEmpty(task[name])).map((name) => {
    const value = task[name]
    return `${name} ${[value]
      .flat()
      .map((each) => word(String(each)))
      .join(',')}`
  })
  const { id, status, version, priority, title, body, metadata } = task
  const head = [`Task ${id}: ${status}`, `version ${version}`, `priority ${priority}`, ...facts]
  const more = isEmpty(metadata) ? [] : [`metadata: ${JSON.stringify(metadata)}`]
  return `${head.join(', ')}\n${untrusted('task', [`title: ${title}`, body, ...more])}`
}

export function taskLines(items: ShownTask[]): string {
  return lines(items.map(taskItem), 'No task is ready.', null)
}
