import type { IndexName } from '../../src/core/schema/schema.ts'
import type { Run, Task } from '../../src/core/schema/task.ts'
import type { Lease, Ticket } from '../../src/core/schema/lock.ts'
import type { Base, Head } from '../../src/stores/port.ts'
import { mustHold } from './broken.ts'
import { standingCycle } from './graph.ts'
import type { History } from './history.ts'
import type { MachineSim } from '../support/machine_sim.ts'

export const PROJECTS = ['web', 'api']
export const LABELS = ['ui', 'db']
export const USERS = ['ann', 'ben', 'cat']
export const GROUPS = ['g', 'h']
/** Nobody may serve the last one for a while. */
export const QUEUE_PROJECTS = [...PROJECTS, 'ios']

/** What the checker remembers from one look to the next. */
export interface Memory {
  tasks: Map<string, Task>
  runs: Map<string, string>
  /** Tasks whose creation was acknowledged. */
  created: Set<string>
  /** Edits of a task's counter that were acknowledged, and those whose reply was lost. */
  edits: Map<string, { known: number; unknown: number }>
}

export interface Looked {
  base: Base
  head: Head
  history: History
  memory: Memory
  machine: MachineSim
  agents: string[]
}

function rowsIn<Row>(base: Base, index: IndexName, group: string): Row[] {
  return base.scan(index, group, undefined, 100_000) as Row[]
}

/** Everything that must be true of the committed rows after every step. */
export function checkRows(looked: Looked): void {
  const { base } = looked
  const tasks = rowsIn<Task>(base, 'tasks', '')
  for (const task of tasks) {
    checkTask(looked, task)
    checkRuns(looked, task, rowsIn<Run>(base, 'runs_of', task.id))
    checkCounter(looked, task)
  }
  for (const id of looked.memory.created) {
    mustHold('S6', !!base.get('task', id), () => `task ${id} is lost`)
  }
  checkReady(looked, tasks)
  checkLeases(looked)
  checkLines(looked)
}

function checkTask({ base, memory }: Looked, task: Task): void {
  const lease = base.get('lease', `task:${task.id}`)
  const fence = lease && lease.ended_at === null ? lease.fence : null
  const says = (what: string) => () => `task ${task.id} ${what}: ${JSON.stringify({ task, lease })}`
  mustHold('S6', task.lock_fence === fence, says('disagrees with its lock'))
  if (task.run_id !== null && task.status !== 'in_progress') {
    // Moved while its command runs: the run ends when that is gone.
    mustHold('S6', fence !== null && lease!.group !== null, says('has a run and no command'))
  }
  if (task.status === 'in_progress') {
    mustHold('S6', task.run_id !== null, says('is in progress without a run'))
    mustHold('S6', fence !== null, says('is in progress under no lease'))
    mustHold('S6', task.assignee === lease!.holder, says('names another than the holder'))
  }
  const unmet = task.depends_on.filter((id) => base.get('task', id)?.status !== 'done').length
  mustHold('S6', task.unmet === unmet, says(`should wait for ${unmet} tasks`))
  const last = memory.tasks.get(task.id)
  if (last) {
    const changed = last.status !== task.status || last.metadata['n'] !== task.metadata['n']
    mustHold('S9', task.version >= last.version, says(`went back from version ${last.version}`))
    mustHold('S9', !changed || task.version > last.version, says('changed without a new version'))
  }
  memory.tasks.set(task.id, task)
}

function checkRuns({ base, memory }: Looked, task: Task, runs: Run[]): void {
  const says = (what: string) => () => `task ${task.id} ${what}: ${JSON.stringify({ task, runs })}`
  const open = runs.filter((run) => run.ended_at === null)
  mustHold('S6', runs.length === task.attempts, says('has lost or invented a run'))
  mustHold('S6', open.length === (task.run_id === null ? 0 : 1), says('has open runs'))
  for (const run of runs) {
    mustHold('S6', (run.status === 'running') === (run.ended_at === null), says('and its runs'))
    const ended = memory.runs.get(run.id)
    const text = JSON.stringify(run)
    mustHold('S6', ended === undefined || ended === text, says(`ended run ${run.id} twice`))
    if (run.ended_at !== null) memory.runs.set(run.id, text)
    const lease = base.get('lease', `task:${task.id}`)
    const current = run.ended_at !== null || run.fence === lease?.fence
    mustHold('S6', current, says(`has run ${run.id} under an old fence`))
  }
}

/** S9: each accepted edit added one to what it had read; a lost update would be missing here. */
function checkCounter({ memory }: Looked, task: Task): void {
  const { known, unknown } = memory.edits.get(task.id) ?? { known: 0, unknown: 0 }
  const n = Number(task.metadata['n'] ?? 0)
  mustHold('S9', n >= known && n <= known + unknown, () => {
    return `task ${task.id} counts ${n} after ${known} edits (${unknown} more without a reply)`
  })
}

function checkReady({ base, agents }: Looked, tasks: Task[]): void {
  const expected = new Set<string>()
  const behind = new Map<string, Task[]>()
  for (const task of tasks) {
    if (task.status !== 'todo' || task.unmet > 0 || task.lock_fence !== null) continue
    const open = ['any', ...task.labels.map((label) => `label:${label}`)]
    if (task.project !== null) open.push(`project:${task.project}`)
    // What is enqueued stands in a lane, which is looked at with the rest of the queue.
    const listed = task.queue ? [] : open
    const scopes = task.assigned_to === null ? listed : [`agent:${task.assigned_to}`]
    for (const scope of scopes) {
      if (task.user === null) expected.add(`${scope} ${task.id} ${task.rank}`)
      else {
        const list = `of\n${task.user}\n${scope}`
        behind.set(list, [...(behind.get(list) ?? []), task])
      }
    }
  }
  // Tasks of a user stand in a list of their own, and the first of them also in the scope.
  for (const [list, mine] of behind) {
    const order = ({ rank, id }: Task) => `${10 ** 15 + rank}\n${id}`
    const sorted = mine.toSorted((a, b) => (order(a) < order(b) ? -1 : 1))
    for (const { id, rank } of sorted) expected.add(`${list} ${id} ${rank}`)
    const [{ id, rank }] = sorted as [Task]
    expected.add(`${list.split('\n').at(-1)} ${id} ${rank}`)
  }
  const scopes = [
    'any',
    ...QUEUE_PROJECTS.map((project) => `project:${project}`),
    ...LABELS.map((label) => `label:${label}`),
    ...agents.map((agent) => `agent:${agent}`),
  ]
  const users = new Set(tasks.flatMap(({ user }) => user ?? []))
  const lists = [...users].flatMap((user) => scopes.map((scope) => `of\n${user}\n${scope}`))
  const found = [...scopes, ...lists].flatMap((scope) => {
    const rows = rowsIn<{ task_id: string; rank: number }>(base, 'ready_in', scope)
    return rows.map((row) => `${scope} ${row.task_id} ${row.rank}`)
  })
  const extra = found.filter((row) => !expected.has(row))
  mustHold('S6', extra.length === 0, () => `ready though they are not: ${extra.join('; ')}`)
  const missing = [...expected].filter((row) => !found.includes(row))
  mustHold('S6', missing.length === 0, () => `ready but not to be found: ${missing.join('; ')}`)
}

/** S1, S10: rows and events tell the same story of who holds what. */
function checkLeases({ base, history }: Looked): void {
  const live = rowsIn<Lease>(base, 'leases_by_expiry', '')
  const rows = live.map((lease) => `${lease.name} ${lease.fence} ${lease.holder}`).toSorted()
  const told = [...history.locks]
    .filter(([, lock]) => !lock.ended)
    .map(([name, lock]) => `${name} ${lock.fence} ${lock.holder}`)
    .toSorted()
  mustHold('S1', rows.join() === told.join(), () => {
    return `rows say ${rows.join('; ')} but events say ${told.join('; ')}`
  })
}

function checkLines({ base, head, machine, history }: Looked): void {
  const tickets = rowsIn<Ticket>(base, 'tickets', '')
  const lines = new Set([...history.locks.keys(), ...tickets.flatMap((ticket) => ticket.names)])
  const places = [...lines].flatMap((name) => {
    return rowsIn<{ ticket_id: string; rank: number }>(base, 'line_of', name).map((place) => {
      return `${place.ticket_id} ${name} ${place.rank}`
    })
  })
  const expected = tickets.flatMap(({ id, names, rank, cycle }) => {
    return cycle ? [] : names.map((name) => `${id} ${name} ${rank}`)
  })
  mustHold('R5', places.toSorted().join() === expected.toSorted().join(), () => {
    return `places ${places.join('; ')} but tickets ${expected.join('; ')}`
  })
  const cycle = standingCycle(tickets, base, head.last_ms, machine)
  mustHold('R6', !cycle, () => `a deadlock was left standing: ${cycle?.join(' → ')}`)
}
