import type { Run } from '../../src/core/schema/task.ts'
import type { Status } from '../../src/core/rows.ts'
import { callerOf } from '../support/helpers.ts'
import { anyTask, learnClaim, sends, TASKS_MAX } from './action_parts.ts'
import { LIMITS_CHANGED } from './queue_rows.ts'
import { GROUPS, QUEUE_PROJECTS, USERS } from './rows.ts'
import type { Action } from './actions.ts'
import { type SimAgent, type SimRun, TTLS_MS, type World } from './world.ts'

/** What dispatchers, runners and admins do to the queue, beside the agents and at any moment. */

const QUEUED_MAX = TASKS_MAX

async function enqueue(world: World, agent: SimAgent): Promise<void> {
  const { random, memory } = world
  if (world.queued >= QUEUED_MAX) return
  world.queued += 1
  world.tasks += 1
  const id = `t${world.tasks}`
  const asked = world.verbs.enqueue(
    {
      id,
      user: random.chance(0.85) ? random.pick(USERS) : null,
      project: random.pick(QUEUE_PROJECTS),
      group: random.chance(0.4) ? random.pick(GROUPS) : null,
      priority: random.below(10),
      depends_on: random.chance(0.15) ? [anyTask(world)].filter((other) => other !== id) : [],
      retries: random.below(2),
      time_limit_ms: random.chance(0.2) ? 8_000 : null,
    },
    world.callerOf(agent),
  )
  if ((await world.outcomeOf('enqueue', asked)).kind === 'ok') memory.created.add(id)
}

async function register(world: World): Promise<void> {
  const { random } = world
  const { name, process } = random.pick(world.dispatchers)
  const projects = random.some(QUEUE_PROJECTS, 1 + random.below(QUEUE_PROJECTS.length))
  const options = { projects, slots_max: 1 + random.below(5), process, ttl_ms: 30_000 }
  await world.outcomeOf('register', world.verbs.register(name, options))
}

async function dispatch(world: World): Promise<void> {
  const { name, process } = world.random.pick(world.dispatchers)
  const asked = world.verbs.dispatch(name, process, world.random.pick([3_000, 30_000, 30_000]))
  const got = await world.outcomeOf('dispatch', asked)
  if (got.kind !== 'ok' || !got.value) return
  world.runs.push({ run: got.value.run, process: undefined, group: undefined })
  if (world.runs.length > 4) world.runs.shift()
}

/** Mostly the newest; at times one that is long over. */
function anyRun({ random, runs }: World): SimRun {
  return random.chance(0.6) ? runs.at(-1)! : random.pick(runs)
}

const lockOf = (run: Run) => `task:${run.task_id}`

function accepted(world: World, { run }: SimRun, what: string): void {
  world.reports.accepted.push({ lock: lockOf(run), fence: run.fence, agent: run.agent, what })
}

/** A runner comes up, early, late, or a second time. */
async function startRun(world: World): Promise<void> {
  if (world.runs.length === 0) return
  const known = anyRun(world)
  for (const asked of sends(world, () => {
    const process = world.machine.spawn()
    const group = world.machine.spawnGroup()
    world.groups.push(group)
    world.runners.push(process)
    Object.assign(known, { process, group })
    return world.verbs.startRun(known.run, { process, group })
  })) {
    const got = await world.outcomeOf('startRun', asked)
    if (got.kind === 'ok') accepted(world, known, 'start')
  }
}

async function finishRun(world: World): Promise<void> {
  if (world.runs.length === 0) return
  const { random, machine } = world
  const known = anyRun(world)
  const lease = await world.verbs.lease(lockOf(known.run))
  if (lease?.group && random.chance(0.8)) machine.endGroup(lease.group)
  const exit_code = random.pick([0, 0, 1])
  for (const asked of sends(world, () => world.verbs.finishRun(known.run, { exit_code }))) {
    const got = await world.outcomeOf('finishRun', asked)
    if (got.kind === 'ok') accepted(world, known, 'finish')
  }
}

/** What the agent of a run does itself: it moves its task, or only shows that it lives. */
async function actInRun(world: World): Promise<void> {
  if (world.runs.length === 0) return
  const { random } = world
  const known = anyRun(world)
  const { run } = known
  const caller = callerOf(run.agent)
  if (random.chance(0.5)) {
    const ttl_ms = random.pick(TTLS_MS)
    const asked = world.verbs.renew(lockOf(run), caller, run.fence, ttl_ms)
    const got = await world.outcomeOf('renewRun', asked)
    const renewed = { lock: lockOf(run), fence: run.fence, ttl_ms, known: got.kind === 'ok' }
    if (got.kind === 'ok' || got.kind === 'unknown') world.reports.renewed.push(renewed)
    if (got.kind === 'ok') accepted(world, known, 'renew')
    return
  }
  const to = random.pick<Status>(['done', 'review', 'todo', 'failed', 'in_progress'])
  const got = await world.outcomeOf('moveRun', world.verbs.move(run.task_id, to, caller, run.fence))
  if (got.kind === 'ok') accepted(world, known, `move to ${to}`)
}

async function claimQueued(world: World, agent: SimAgent): Promise<void> {
  const options = { ttl_ms: world.random.pick(TTLS_MS), queued: true }
  const caller = world.callerOf(agent)
  const asked = world.random.chance(0.5)
    ? world.verbs.nextQueued(caller, options)
    : world.verbs.claim(anyTask(world), caller, options)
  learnClaim(agent, await world.outcomeOf('claimQueued', asked))
}

async function cancel(world: World, agent: SimAgent): Promise<void> {
  const caller = world.callerOf(agent, world.random.chance(0.5))
  await world.outcomeOf('cancel', world.verbs.cancel(anyTask(world), caller))
}

async function retry(world: World, agent: SimAgent): Promise<void> {
  await world.outcomeOf('retry', world.verbs.retry(anyTask(world), world.callerOf(agent)))
}

async function pause(world: World): Promise<void> {
  const { random, verbs } = world
  const what = random.pick([
    {},
    { project: random.pick(QUEUE_PROJECTS) },
    { user: random.pick(USERS) },
  ])
  const asked = random.chance(0.35) ? verbs.pause(what) : verbs.resume(what)
  await world.outcomeOf('pause', asked)
}

async function limit(world: World): Promise<void> {
  const { random } = world
  const max = random.pick([0, 1, 2, 3, null])
  const what = random.pick([
    { project: random.pick(QUEUE_PROJECTS), max },
    { group: random.pick(GROUPS), max },
    { max: max === null ? null : max + 2 },
    { user: random.pick(USERS), max, weight: 1 + random.below(3) },
  ])
  world.used.set(LIMITS_CHANGED, 1)
  await world.outcomeOf('limit', world.verbs.limit(what))
}

async function settings(world: World): Promise<void> {
  const { random } = world
  const limits = new Map(
    QUEUE_PROJECTS.map((name) => [`project:${name}`, random.pick([1, 2, null])]),
  )
  const users = new Map(random.some(USERS, 2).map((user) => [user, { weight: 2, max: null }]))
  const user_max = random.pick([1, 1, 1, null] as const)
  world.used.set(LIMITS_CHANGED, 1)
  const asked = world.verbs.settings({ limits, users, user_max })
  await world.outcomeOf('settings', asked)
}

/** Only of tasks that nobody works on: what a run counts against is settled when it begins. */
async function editQueued(world: World): Promise<void> {
  const { random } = world
  const id = anyTask(world)
  const task = await world.verbs.task(id)
  if (!task) return
  const fields = random.pick([
    { user: random.pick(USERS) },
    { project: random.pick(QUEUE_PROJECTS) },
    { priority: random.below(10) },
    { group: random.pick([...GROUPS, null]) },
  ])
  const asked = world.verbs.edit(id, task.version, fields, { ...callerOf('editor'), admin: true })
  await world.outcomeOf('editQueued', asked)
}

async function cleanUp(world: World): Promise<void> {
  const older_than_ms = world.random.pick([undefined, 2_000, 20_000])
  await world.outcomeOf('cleanUp', world.verbs.cleanUp({ older_than_ms }))
}

async function releaseUser(world: World): Promise<void> {
  await world.outcomeOf('releaseUser', world.verbs.releaseUser(world.random.pick(USERS)))
}

/** Weights beside those of what agents do. */
export const QUEUE_ACTIONS: [number, Action][] = [
  [5, enqueue],
  [3, register],
  [12, dispatch],
  [7, startRun],
  [6, finishRun],
  [4, actInRun],
  [4, claimQueued],
  [2, cancel],
  [2, retry],
  [2, pause],
  [2, limit],
  [1, settings],
  [3, editQueued],
  [1, cleanUp],
  [1, releaseUser],
]
