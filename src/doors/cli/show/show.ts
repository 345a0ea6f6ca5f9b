import pc from 'picocolors'
import type { ShownLease, ShownStatus } from '../../../operations/locks.ts'
import type { AnswerOf, ByAnswer, RegisteredName } from '../../../operations/registry.ts'
import type { SheetFact } from './table.ts'
import { argument } from '../../../core/quote.ts'
import { harmless, printable, safeJson } from '../../unseen.ts'
import type { Context } from '../context.ts'
import { MEMORY_PRINTERS } from './memory.ts'
import { QUEUE_PRINTERS } from './queue.ts'
import { RESERVATION_PRINTERS } from './reservations.ts'
import { STATS_PRINTERS } from './stats.ts'
import { SEARCH_PRINTERS } from './search.ts'
import { clock, clocked, factLines, indented, pageTable, span } from './table.ts'
import { io } from '../../io.ts'

type ShownTask = AnswerOf<'task.get'>

/** Prints a result: JSON for a program, words and tables for a person. */
export function show<N extends RegisteredName>(
  { json }: { json: Context['json'] },
  operation: N,
  result: AnswerOf<N>,
): void {
  if (json) return print(safeJson(result))
  const printer: (shown: never) => string = PRINTERS[operation] ?? asData
  print(printer(printable(result) as never))
}

const asData = (result: unknown) => JSON.stringify(result, null, 2)

/** The only way to standard output: nothing but our colours reaches a terminal as a command. */
export function print(text: string): void {
  io().stdout.write(`${harmless(text)}\n`)
}

const PRINTERS: ByAnswer<string> = {
  ...QUEUE_PRINTERS,
  ...RESERVATION_PRINTERS,
  ...STATS_PRINTERS,
  ...MEMORY_PRINTERS,
  ...SEARCH_PRINTERS,
  'lock.acquire': (got) => ('items' in got ? got.items : [got]).map(leaseLine).join('\n'),
  'lock.renew': (lease) => `${pc.green('renewed')} ${lease.name} ${untilOf(lease)}`,
  'lock.release': (was) =>
    ('items' in was ? was.items : [was])
      .map((each) => `${pc.green('released')} ${each.name}`)
      .join('\n'),
  'lock.force_release': (was) =>
    `${pc.yellow('force-released')} ${was.name}, which ${was.holder} held`,
  'lock.hand_off': (lease) =>
    `${pc.green('handed')} ${lease.name} to ${lease.holder}, fence ${pc.bold(String(lease.fence))}`,
  'lock.status': lockStatus,
  'lock.list': (page) =>
    pageTable(page, 'No lock is held. Take one: leasehold lock acquire NAME', {
      LOCK: 'name',
      HOLDER: 'holder',
      FENCE: 'fence',
      PID: 'pid',
      'EXPIRES IN': ({ expires_in_seconds }) => span(expires_in_seconds),
    }),
  'lock.explain': explained,
  'task.create': (task) => `${pc.green('added')} task ${pc.bold(task.id)}: ${task.title}`,
  'task.get': taskSheet,
  'task.list': (page) =>
    pageTable(page, 'No tasks here. Add one: leasehold task add "Fix the login test"', {
      ID: 'id',
      STATUS: ({ status }) => coloured(status),
      P: 'priority',
      PROJECT: 'project',
      ASSIGNEE: 'assignee',
      TITLE: 'title',
    }),
  'task.claim': ({ claims, ...one }) => (claims?.length ? claims : [one]).map(claimLine).join('\n'),
  'task.status': claimLine,
  'task.update': (task) => `${pc.green('changed')} task ${task.id}, now version ${task.version}`,
  'task.explain': explained,
  'agent.list': (page) =>
    pageTable(page, 'No agent has been here yet.', {
      AGENT: 'id',
      KIND: 'kind',
      HOST: 'host',
      'LAST SEEN': ({ last_seen_at }) => clock(last_seen_at),
      HOLDS: 'holds',
    }),
  'lock.waiters': (page) =>
    pageTable(page, 'Nobody waits for a lock.', {
      AGENT: 'agent',
      'WAITS FOR': 'names',
      P: 'priority',
      SINCE: ({ asked_at }) => clock(asked_at),
    }),
  'event.list': (page) =>
    pageTable(page, nothingFound(page), {
      AT: ({ at }) => clock(at),
      EVENT: 'type',
      AGENT: 'agent',
      'LOCK OR TASK': ({ lock, task }) => lock ?? task,
    }),
  'agent.heartbeat': ({ items }) =>
    items.length === 0 ? 'nothing to renew' : items.map((l) => `renewed ${l.name}`).join('\n'),
}

/** A search that was bounded says how far it has looked. */
const nothingFound = ({ next, looked_to }: AnswerOf<'event.list'>) =>
  next && looked_to
    ? `Nothing back to ${clock(looked_to)}; there is more.`
    : 'Nothing has happened.'

function explained({ sentence, next }: { sentence: string; next: string }): string {
  return clocked(sentence) + (next && pc.dim(`\n  next: ${next}`))
}

function leaseLine(lease: ShownLease): string {
  const fence = pc.bold(String(lease.fence))
  const what = `${lease.name} for ${lease.holder}`
  return `${pc.green('acquired')} ${what}, fence ${fence}, ${untilOf(lease)}`
}

const untilOf = (lease: ShownLease) =>
  `until ${clock(lease.expires_at)} (${span(lease.expires_in_seconds)})`

function lockStatus(status: ShownStatus): string {
  const pid = status.pid === undefined ? '' : ` (PID: ${status.pid})`
  const left = span(status.expires_in_seconds ?? 0)
  const task = status.task_id === undefined ? '' : ` for task ${status.task_id}`
  const lines = status.is_locked
    ? [
        `${status.name} is ${pc.yellow('held')} by ${status.lock_holder}${pid}${task}`,
        `  fence ${status.fence}, expires in ${left} (${clock(status.lock_expires_at)})`,
      ]
    : [`${status.name} is ${pc.green('free')}`]
  for (const waiter of status.waiters) {
    lines.push(`  ${waiter.position}. ${waiter.agent} waits since ${clock(waiter.asked_at)}`)
  }
  return lines.join('\n')
}

const COLOURS: Record<string, (text: string) => string> = {
  todo: (text) => text,
  in_progress: pc.yellow,
  review: pc.cyan,
  done: pc.green,
  failed: pc.red,
  cancelled: pc.dim,
}

const coloured = (status: string) => (COLOURS[status] ?? pc.bold)(status)

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

function taskSheet(task: ShownTask): string {
  const facts: SheetFact[] = [
    ['status', coloured(task.status)],
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
    ['lock until', clock(task.lock_until)],
    ['attempts', task.attempts],
    ...queueFacts(task.queue),
    ['created', `${clock(task.created_at)} by ${task.created_by}`],
    ['updated', clock(task.updated_at)],
    ['metadata', Object.keys(task.metadata).length > 0 ? JSON.stringify(task.metadata) : null],
  ]
  const head = pc.bold(`${task.id}  ${task.title}`)
  return [head, ...factLines(facts), ...(task.body ? ['', indented(task.body)] : [])].join('\n')
}

function claimLine(claim: AnswerOf<'task.status'>): string {
  const { task, lease, run, note } = claim
  if (note !== undefined) return note
  if (!task) return 'Nothing is ready. See why: leasehold task list, leasehold task explain ID'
  if (!lease) return `task ${task.id} is now ${coloured(task.status)}`
  const times = `fence ${pc.bold(String(lease.fence))}, until ${clock(lease.expires_at)}`
  if (!run) return `task ${task.id} is now ${coloured(task.status)}; its lock stays: ${times}`
  const what = `task ${pc.bold(task.id)} (${task.title})`
  const { name, fence, expires_in_seconds } = lease
  const renew = `leasehold lock renew ${argument(name)} --fence ${fence}`
  return (
    `${pc.green('claimed')} ${what} as run ${run.id}, ${times}\n` +
    pc.dim(`  yours for ${span(expires_in_seconds)}; to keep it longer: ${renew}`)
  )
}
