import { nameOfHost } from '../../core/queue/rows.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import type { ShownRun } from '../../operations/runs.ts'
import { pageTable, type Pen, type Readings, since, span } from './pen.ts'
import { warning } from './work.ts'

type Placed = Omit<AnswerOf<'queue.add' | 'queue.retry'>, 'warnings'>

const placed = ({ task, position }: Placed, pen: Pen) => {
  const place = position === null ? '' : `, number ${position} in the queue of ${task.user}`
  return `task ${pen.strong(task.id)} (${short(task.title)})${place}`
}

const what = ({ project, user }: AnswerOf<'queue.pause'>) =>
  [project && `project ${project}`, user && `user ${user}`].filter(Boolean).join(' and ') ||
  'the whole queue'

function limitLine(set: AnswerOf<'queue.limit'>, pen: Pen): string {
  const { project, group, user, max, used, weight } = set
  const named = [project && `project ${project}`, group && `group ${group}`, user && `user ${user}`]
  const of = named.find(Boolean) ?? 'the pool of all'
  const most = max === null ? 'any number may run at once' : `at most ${max} at once`
  const share = weight === null ? '' : `, weight ${weight}`
  return `${pen.did('set')} ${of}: ${most} (${used} now)${share}`
}

/** One that still runs has lost its lease, and is being stopped. */
function settledLine(run: AnswerOf<'queue.cleanup'>['items'][number], pen: Pen): string {
  const { id, status, task_id, task_status } = run
  if (status === 'running') {
    return `${pen.undid('stopping')} run ${id}; then task ${task_id} can be started again`
  }
  const after =
    task_status === 'todo' ? 'waits and will be started again' : `is ${task_status}, and stays so`
  return `${pen.undid('settled')} run ${id} (${status}): task ${task_id} ${after}`
}

const NOTHING_WAITS =
  'Nothing waits. Add a task: leasehold queue add "Fix the login test" --project web --user me'

/** How results of the queue and of runs are shown to a person. */
export const QUEUE: Readings = {
  'queue.add': (added, pen) =>
    [
      `${pen.did('enqueued')} ${placed(added, pen)}`,
      ...added.warnings.map((each) => warning(each, pen)),
    ].join('\n'),
  'queue.retry': (retried, pen) => `${pen.did('enqueued again')} ${placed(retried, pen)}`,
  'queue.cancel': (task, pen) => `${pen.undid('cancelled')} task ${task.id}: ${task.title}`,
  'queue.pause': (part, pen) => `${pen.undid('paused')} ${what(part)}`,
  'queue.resume': (part, pen) => `${pen.did('resumed')} ${what(part)}`,
  'queue.limit': (set, pen) =>
    `${limitLine(set, pen)}, until a config.json that names it is read again`,
  'queue.cleanup': ({ items }, pen) =>
    items.length === 0
      ? 'Nothing is stale.'
      : items.map((each) => settledLine(each, pen)).join('\n'),
  'queue.release_user': ({ user, cancelled }, pen) =>
    `${pen.undid('released')} user ${user}` +
    (cancelled.length > 0 ? `: cancelled task ${cancelled.join(', ')}` : ''),
  'land.add': ({ note }) => note,
  'land.cancel': ({ id }, pen) => `${pen.undid('cancelled')} landing ${id}`,
  'land.list': (page, pen) =>
    pageTable(pen, page, 'Nothing has been landed yet. See: leasehold land --help', {
      ID: 'id',
      STATUS: ({ status, position }) => (position === null ? status : `${status} (${position})`),
      ONTO: ({ target }) => target ?? '(check)',
      'TASK OR BRANCH': ({ task_id, branch }) => task_id ?? branch,
      WHY: 'reason',
    }),
  'land.get': landingSheet,
  'queue.list': (page, pen) =>
    pageTable(pen, page, NOTHING_WAITS, {
      ID: 'id',
      USER: 'user',
      PROJECT: 'project',
      P: 'priority',
      GROUP: 'group',
      WAITS: ({ created_at }) => since(created_at),
      TITLE: ({ title }) => short(title),
    }),
  'queue.status': queueSheet,
  'run.list': (page, pen) =>
    pageTable(pen, page, 'No dispatcher has started anything yet. See: leasehold queue status', {
      RUN: 'id',
      STATUS: ({ status }) => colouredRun(status, pen),
      USER: 'user',
      PROJECT: 'project',
      AGENT: 'agent',
      TOOK: took,
      OUTCOME: 'outcome',
    }),
  'run.get': runSheet,
  'worktree.list': (page, pen) =>
    pageTable(pen, page, 'No run has a worktree. See docs/worktrees.md', {
      ID: 'id',
      STATE: 'state',
      PROJECT: 'project',
      BRANCH: 'branch',
      SAVED: ({ salvage }) => salvage?.commit.slice(0, 12) ?? '',
      PATH: 'path',
      'KEPT BECAUSE': 'kept_because',
    }),
  'worktree.get': ({ id, state, salvage, changed, overlaps, kept_because, host, ...tree }, pen) =>
    [
      `worktree ${pen.strong(id)}: ${state}`,
      ...pen.facts([
        ...(['path', 'branch', 'base', 'project', 'task_id', 'run_id'] as const).map(
          (name): [string, string | null] => [name.replace('_id', ''), tree[name]],
        ),
        ['host', nameOfHost(host)],
        ['saved', salvage && `${salvage.ref} (${salvage.commit})`],
        ['not saved', salvage?.left_out.join(', ') ?? null],
        ['changed', changed.join(', ')],
        ...overlaps.map(({ task_id, paths }): [string, string] => {
          return ['may conflict', `with task ${task_id}: both change ${paths.join(', ')}`]
        }),
        ['kept', kept_because],
      ]),
    ].join('\n'),
}

const RUN_COLOURS: Record<string, 'warn' | 'good' | 'bad' | 'dim'> = {
  running: 'warn',
  completed: 'good',
  failed: 'bad',
  lost: 'bad',
  cancelled: 'dim',
}

const colouredRun = (status: string, pen: Pen) => pen[RUN_COLOURS[status] ?? 'strong'](status)

const secondsBetween = (from: string, to: number) =>
  Math.max(0, Math.round((to - Date.parse(from)) / 1000))

/** A title may be the first line of a prompt, and would wrap. */
const short = (title: string) => (title.length > 40 ? `${title.slice(0, 39)}…` : title)

const took = (run: ShownRun) =>
  span(secondsBetween(run.started_at, run.ended_at ? Date.parse(run.ended_at) : Date.now()))

const SHOWN = 20

function counts(by: Record<string, number>): string {
  const all = Object.entries(by)
  const some = all.slice(0, SHOWN).map(([name, n]) => `${name || '(no user)'} ${n}`)
  const more = all.length > SHOWN ? [`and ${all.length - SHOWN} more`] : []
  return [...some, ...more].join(', ') || 'nothing'
}

const paused = (part: string, pen: Pen) => `  ${pen.warn('paused')}    ${part}`

function queueSheet(status: AnswerOf<'queue.status'>, pen: Pen): string {
  const { pending, active, user_locks, dispatchers, pool } = status
  const lines = [
    `${pen.strong('queue')}${status.paused ? pen.warn('  paused (leasehold queue resume)') : ''}`,
    `  waiting   ${pending.total}${pending.high > 0 ? `, ${pending.high} of high priority` : ''}`,
    ...(pending.total > 0 ? [`  by user   ${counts(pending.by_user)}`] : []),
    `  running   ${counts(active.by_project)}`,
  ]
  for (const name of status.paused_projects) lines.push(paused(`project ${name}`, pen))
  for (const name of status.paused_users) lines.push(paused(`user ${name}`, pen))
  if (pool.max !== null) lines.push(`  pool      ${pool.used} of ${pool.max} in use`)
  for (const { project, group, max, used } of status.limits) {
    const of = project === null ? `group ${group}` : `project ${project}`
    if (max !== null) lines.push(`  limit     ${of}: ${used} of ${max} in use`)
  }
  lines.push(
    dispatchers.length > 0
      ? `  slots     ${active.slots_used} of ${active.slots_max} in use`
      : pen.warn('  slots     no dispatcher runs: leasehold up, or leasehold dispatch'),
  )
  for (const { host, pid, slots_used, slots_max, projects } of dispatchers) {
    const serves = projects.join(', ') || 'no project: see docs/config.md'
    lines.push(`  host      ${host} (PID: ${pid}) ${slots_used}/${slots_max}, serves ${serves}`)
  }
  if (user_locks.details.length === 0) return lines.join('\n')
  const busy = pageTable(pen, { items: user_locks.details.slice(0, pen.isTool ? 10 : 1_000) }, '', {
    'BUSY USER': 'user',
    TASK: ({ task_id }) => task_id ?? '(by hand)',
    PID: 'acquired_by_pid',
    FOR: ({ acquired_at }) => acquired_at && since(acquired_at),
  })
  return [...lines, '', busy].join('\n')
}

function runSheet(run: ShownRun, pen: Pen): string {
  const facts = pen.facts([
    ['status', colouredRun(run.status, pen)],
    ['outcome', run.outcome],
    ['user', run.user],
    ['project', run.project],
    ['agent', run.agent],
    ['lock', `${run.lock_id}${run.lock_released ? ' (released)' : ''}`],
    ['process', run.pid === null ? null : `${run.pid} on ${run.host}`],
    ['claimed', pen.time(run.started_at)],
    ['started', pen.time(run.begun_at)],
    ['ended', pen.time(run.ended_at)],
    ['exit code', run.exit_code],
    ['signal', run.signal],
  ])
  // An agent that claimed the task itself prints elsewhere.
  const output = run.dispatcher === null ? [] : [pen.dim(`  output: leasehold runs logs ${run.id}`)]
  return [pen.strong(`${run.id}  ${run.title ?? ''}`), ...facts, ...output].join('\n')
}

function landingSheet(landing: AnswerOf<'land.get'>, pen: Pen): string {
  const { id, status, target, branch, task_id, commit, position, reason, paths, output } = landing
  const place = position === null ? '' : `, number ${position} in line`
  const head = pen.strong(`${id}  ${target === null ? 'check' : `onto ${target}`}`)
  const facts = pen.facts([
    ['status', `${status}${place}`],
    ['task', task_id],
    ['branch', branch],
    ['commit', commit],
    ['why', reason],
    ['paths', paths.join(', ')],
    ['asked', `${pen.time(landing.asked_at)} by ${landing.asked_by}`],
    ['ended', pen.time(landing.ended_at)],
  ])
  return [head, ...facts, ...(output ? ['', output] : [])].join('\n')
}
