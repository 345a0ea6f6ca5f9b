import type { Run, Task } from '../schema/task.ts'
import type { Caller } from '../caller.ts'
import { LOST_MAX } from '../bounds.ts'
import { listed, quoted } from '../quote.ts'
import { readyFor } from '../tasks/claim.ts'
import { returnedLast } from '../landing/ask.ts'
import { explainTask } from '../tasks/explain.ts'
import type { View } from '../view.ts'
import { about, type Cause, type CauseKind, causeOf, firstRows, many } from './cause.ts'
import { recentEvents } from './report.ts'
import { HOUR_MS } from './stat.ts'

/** Tasks of a status, and runs, that are looked at. */
const LOOKED_MAX = 100
/** So many deaths within an hour are no accident. */
const DEATHS_MANY = 10
/** An agent that is about to claim a task needs no such time. */
const UNCLAIMED_MS = 60_000

interface Failure {
  task: Task
  run: Run | undefined
}

/** What has ended badly or waits for a person: failed, put aside, in review, and deaths. */
export function endCauses(view: View, caller: Caller): Cause[] {
  return [
    ...failedCauses(view, caller),
    ...reviewCauses(view, caller),
    ...unclaimedCauses(view, caller),
    ...deathCauses(view),
  ]
}

function failedCauses(view: View, caller: Caller): Cause[] {
  const { rows, more } = firstRows(view.scan('tasks_with_status', 'failed'), LOOKED_MAX)
  const failed = new Map(rows.map((task) => [task.id, task]))
  // Where there are very many, those that failed last are among them.
  if (more) for (const task of failedLately(view)) failed.set(task.id, task)
  const groups = new Map<string, Failure[]>()
  for (const task of failed.values()) {
    const run = view.get('run', `${task.id}.${task.attempts}`)
    const key = `${kindOf(task, run)}:${lastWord(view, { task, run })}`
    const group = groups.get(key)
    if (group) group.push({ task, run })
    else groups.set(key, [{ task, run }])
  }
  return [...groups].map(([id, group]) => failedCause(view, id, group, more, caller))
}

function failedLately(view: View): Task[] {
  return firstRows(view.scan('runs_newest', ''), LOOKED_MAX).rows.flatMap(({ task_id }) => {
    const task = view.get('task', task_id)
    return task?.status === 'failed' ? [task] : []
  })
}

function kindOf({ queue }: Task, run: Run | undefined): CauseKind {
  if ((queue?.lost ?? 0) >= LOST_MAX) return 'quarantined'
  return run?.outcome?.startsWith('could not start') ? 'agent_missing' : 'failed'
}

const FAILED: { [K in CauseKind]?: string } = {
  quarantined: 'put aside after too many lost runs',
  agent_missing: 'could not be started',
  failed: 'failed',
}

function failedCause(
  view: View,
  id: string,
  group: Failure[],
  at_least: boolean,
  caller: Caller,
): Cause {
  const newest = group.toSorted((a, b) => (endOf(a) < endOf(b) ? 1 : -1))
  const { task, run } = newest[0]!
  const kind = kindOf(task, run)
  const ids = newest.map((each) => each.task.id)
  const n = `${ids.length}${at_least ? '+' : ''}`
  const which = ids.length === 1 ? `Task ${ids[0]}` : `${n} tasks (${listed(ids)})`
  const was = kind === 'quarantined' ? (ids.length === 1 ? 'was ' : 'were ') : ''
  const waiting = ids.slice(0, 20).flatMap((each) => {
    return firstRows(view.scan('dependents_of', each), 20).rows
  })
  const behind = waiting.length === 0 ? '' : `; ${many(waiting.length, 'task', 'wait')} for that`
  const said = lastWord(view, { task, run })
  const last = said === '' ? '' : `: ${quoted(said)}`
  const { sentence, next } = explainTask(view, task.id, caller.agent)
  return causeOf({
    id,
    kind,
    severity: kind === 'failed' ? 'warn' : 'bad',
    what: `${which} ${was}${FAILED[kind]!}${last}${behind}`,
    why: sentence,
    next,
    since: endOf(newest.at(-1)!) || null,
    tasks: ids.length,
    at_least,
    about: [...about('task', ids.slice(0, 8)), ...about('run', run ? [run.id] : [])],
    actions: newest.map((each) => again(each.task)),
  })
}

/** Why it failed: what came back from landing it, else how its last run ended. */
const lastWord = (view: View, { task, run }: Failure) =>
  returnedLast(view, task)?.reason ?? run?.outcome ?? ''

const endOf = ({ run, task }: Failure) => run?.ended_at ?? task.updated_at

function again({ id, queue }: Task) {
  const says = `Retry task ${id}`
  return queue
    ? { says, operation: 'queue.retry', input: { id }, admin: false }
    : { says, operation: 'task.status', input: { id, status: 'todo' }, admin: false }
}

function reviewCauses(view: View, caller: Caller): Cause[] {
  const { rows, more } = firstRows(view.scan('tasks_with_status', 'review'), LOOKED_MAX)
  const [task] = rows
  if (!task) return []
  const ids = rows.map(({ id }) => id)
  const { sentence, next } = explainTask(view, task.id, caller.agent)
  const move = (says: string, id: string, status: string) => {
    return {
      says: `${says} task ${id}`,
      operation: 'task.status',
      input: { id, status },
      admin: false,
    }
  }
  return [
    causeOf({
      id: 'review:',
      kind: 'review',
      severity: 'warn',
      what: `${many(ids.length, 'task', 'wait', more)} for a review: ${listed(ids)}`,
      why: sentence,
      next,
      since: rows.map(({ updated_at }) => updated_at).toSorted()[0]!,
      tasks: ids.length,
      at_least: more,
      about: about('task', ids),
      actions: ids
        .slice(0, 3)
        .flatMap((id) => [move('Accept', id, 'done'), move('Send back', id, 'todo')]),
    }),
  ]
}

function unclaimedCauses(view: View, caller: Caller): Cause[] {
  const { rows: tasks, more } = firstRows(readyFor(view, {}, ''), LOOKED_MAX)
  const waiting = tasks.filter(
    ({ updated_at }) => view.wall - Date.parse(updated_at) > UNCLAIMED_MS,
  )
  const isReady = ({ id }: Task) =>
    explainTask(view, id, caller.agent).reasons.every(({ code }) => code === 'ready')
  // One that a limit keeps from being claimed is not what agents pass by.
  const ready = waiting.filter(isReady)
  const old = ready.length > 0 ? ready : waiting
  const [task] = old
  if (!task) return []
  const { sentence, next } = explainTask(view, task.id, caller.agent)
  const one = old.length === 1 && !more
  const are = one ? '1 task is' : `${old.length}${more ? '+' : ''} tasks are`
  return [
    causeOf({
      id: 'unclaimed:',
      kind: 'unclaimed',
      severity: 'info',
      what:
        ready.length > 0
          ? `${are} ready, but no agent has claimed ${one ? 'it' : 'them'} yet`
          : `${are} unclaimed: no agent may claim ${one ? 'it' : 'them'} yet`,
      why: sentence,
      next,
      since: old.map(({ updated_at }) => updated_at).toSorted()[0]!,
      tasks: old.length,
      at_least: more,
      about: about(
        'task',
        old.map(({ id }) => id),
      ),
    }),
  ]
}

/** From counts by the minute: however many there were, and whether or not anybody saw them. */
function deathCauses(view: View): Cause[] {
  const events = recentEvents(view, HOUR_MS)
  const died = events['lease.died'] ?? 0
  const expired = events['lease.expired'] ?? 0
  if (died + expired < DEATHS_MANY) return []
  return [
    causeOf({
      id: 'deaths:',
      kind: 'deaths',
      severity: 'bad',
      what: `In the last hour ${died} holders died, and ${expired} leases expired without a word`,
      next: 'See who: leasehold event list --type lease.died,lease.expired --since 1h',
      since: new Date(view.wall - HOUR_MS).toISOString(),
      about: about('events', ['lease.died,lease.expired']),
    }),
  ]
}
