import type { Lease } from '../../src/core/schema/lock.ts'
import type { Status } from '../../src/core/rows.ts'
import { anyTask, learnClaim, sends, TASKS_MAX } from './action_parts.ts'
import { LABELS, PROJECTS, USERS } from './rows.ts'
import { LOCKS, type Outcome, type SimAgent, TTLS_MS, type World } from './world.ts'

/**
 * What an agent may do in one step. Each sends its ask before it waits for anything, so that the
 * asks of one step are decided in one batch.
 */
export type Action = (world: World, agent: SimAgent) => Promise<void>

const ENDS: Status[] = ['done', 'review', 'failed', 'cancelled', 'todo']
const taskOf = (lock: string) => lock.slice('task:'.length)

async function create(world: World, agent: SimAgent): Promise<void> {
  const { random, memory } = world
  if (world.tasks - world.queued >= TASKS_MAX) return
  const depends_on = random.chance(0.3) && world.tasks > 0 ? [anyTask(world), anyTask(world)] : []
  world.tasks += 1
  const id = `t${world.tasks}`
  const asked = world.verbs.add('x', world.callerOf(agent), {
    id,
    depends_on,
    priority: random.below(10),
    project: random.chance(0.5) ? random.pick(PROJECTS) : null,
    user: random.chance(0.3) ? random.pick(USERS) : null,
    labels: random.some(LABELS, random.below(3)),
    assigned_to: random.chance(0.15) ? random.pick(world.agents).id : null,
  })
  if ((await world.outcomeOf('create', asked)).kind === 'ok') memory.created.add(id)
}

async function claimNext(world: World, agent: SimAgent): Promise<void> {
  const { random } = world
  const filter = {
    ...(random.chance(0.3) && { project: random.pick(PROJECTS) }),
    ...(random.chance(0.2) && { label: random.pick(LABELS) }),
  }
  const options = { ttl_ms: random.pick(TTLS_MS) }
  const asked = world.verbs.next(world.callerOf(agent), filter, options)
  learnClaim(agent, await world.outcomeOf('claimNext', asked))
}

async function claim(world: World, agent: SimAgent): Promise<void> {
  const { random } = world
  const id = anyTask(world)
  const options = { ttl_ms: random.pick(TTLS_MS), takeover: random.chance(0.1) }
  const caller = world.callerOf(agent)
  for (const asked of sends(world, () => world.verbs.claim(id, caller, options))) {
    learnClaim(agent, await world.outcomeOf('claim', asked))
  }
}

/** Ends work on a task it believes to hold, however long ago it got it. */
async function finish(world: World, agent: SimAgent): Promise<void> {
  const locks = [...agent.held].filter(([name]) => name.startsWith('task:'))
  if (locks.length === 0) return
  const [lock, fence] = world.random.pick(locks)
  await endTask(world, agent, lock, fence)
}

async function endTask(world: World, agent: SimAgent, lock: string, fence: number) {
  const to = world.random.pick(ENDS)
  const task = taskOf(lock)
  const caller = world.callerOf(agent)
  for (const asked of sends(world, () => world.verbs.move(task, to, caller, fence))) {
    const got = await world.outcomeOf('finish', asked)
    if (got.kind === 'ok') {
      world.reports.accepted.push({ lock, fence, agent: agent.id, what: `end as ${to}` })
      if (!got.value.lease) world.reports.finished.push({ task, fence, agent: agent.id })
    }
    if (got.kind === 'refused' || (got.kind === 'ok' && !got.value.lease)) world.lose(agent, lock)
  }
}

async function moveAny(world: World, agent: SimAgent): Promise<void> {
  const to = world.random.pick<Status>(['in_progress', 'in_progress', 'done', 'todo', 'cancelled'])
  const admin = world.random.chance(0.2)
  const asked = world.verbs.move(anyTask(world), to, world.callerOf(agent, admin))
  await world.outcomeOf('move', asked)
}

async function renew(world: World, agent: SimAgent): Promise<void> {
  if (agent.held.size === 0) return
  const [lock, fence] = world.random.pick([...agent.held])
  const ttl_ms = world.random.pick(TTLS_MS)
  const asked = world.verbs.renew(lock, world.callerOf(agent), fence, ttl_ms)
  const got = await world.outcomeOf('renew', asked)
  if (got.kind === 'ok') {
    world.reports.accepted.push({ lock, fence, agent: agent.id, what: 'renew' })
  }
  const known = got.kind === 'ok'
  if (known || got.kind === 'unknown') world.reports.renewed.push({ lock, fence, ttl_ms, known })
  if (got.kind === 'refused') world.lose(agent, lock)
}

async function heartbeat(world: World, agent: SimAgent): Promise<void> {
  const got = await world.outcomeOf('heartbeat', world.verbs.heartbeat(world.callerOf(agent)))
  if (got.kind === 'ok') {
    for (const { name: lock, fence, ttl_ms } of got.value) {
      world.reports.renewed.push({ lock, fence, ttl_ms, known: true })
    }
  }
  if (got.kind !== 'unknown') return
  for (const [lock, { holder, fence, ttl_max: ttl_ms }] of world.history.locks) {
    if (holder === agent.id) world.reports.renewed.push({ lock, fence, ttl_ms, known: false })
  }
}

function namesFor(world: World): string[] {
  const { random } = world
  if (random.chance(0.2) && world.tasks > 0) return [`task:${anyTask(world)}`]
  if (random.chance(0.1)) return [`user:${random.pick(USERS)}`]
  return random.some(LOCKS, random.pick([1, 1, 2, 3]))
}

async function acquire(world: World, agent: SimAgent): Promise<void> {
  const { random } = world
  const names = namesFor(world)
  const options = { ttl_ms: random.pick(TTLS_MS), takeover: random.chance(0.1) }
  const caller = world.callerOf(agent)
  const sent = sends(world, () => world.verbs.acquire(names, caller, options))
  for (const asked of sent) {
    const got = await world.outcomeOf('acquire', asked)
    const granted = learnGrants(agent, got)
    const certain = sent.length === 1 && got.kind !== 'unknown'
    world.reports.askedFor.push({ agent: agent.id, names, granted: certain ? granted : 'unknown' })
  }
}

function learnGrants(agent: SimAgent, got: Outcome<Lease[] | object>): number {
  if (got.kind !== 'ok' || !Array.isArray(got.value)) return 0
  for (const { name, fence } of got.value as Lease[]) agent.held.set(name, fence)
  return got.value.length
}

/** Joins a line, or asks again with the ticket it has: too late, too early, or in time. */
async function wait(world: World, agent: SimAgent): Promise<void> {
  const { random } = world
  agent.ticket ??= newTicket(world)
  const { id, names, priority } = agent.ticket
  if (random.chance(0.08)) {
    await world.outcomeOf('giveUp', world.verbs.giveUp(id, world.callerOf(agent)))
    agent.ticket = undefined
    return
  }
  const options = { priority, ttl_ms: random.pick(TTLS_MS) }
  const got = await world.outcomeOf(
    'wait',
    world.verbs.wait(names, world.callerOf(agent), id, options),
  )
  const granted = learnGrants(agent, got)
  if (granted > 0 || got.kind === 'refused') agent.ticket = undefined
  const known = got.kind === 'unknown' ? 'unknown' : granted
  world.reports.askedFor.push({ agent: agent.id, names, granted: known })
}

function newTicket(world: World) {
  world.tickets += 1
  const id = `ticket-${world.tickets}`
  return { id, names: namesFor(world), priority: world.random.pick([0, 0, 0, 1, 5]) }
}

async function release(world: World, agent: SimAgent): Promise<void> {
  if (agent.held.size === 0) return
  const [lock, fence] = world.random.pick([...agent.held])
  const caller = world.callerOf(agent)
  const stated = world.random.chance(0.8) ? fence : undefined
  for (const asked of sends(world, () => world.verbs.release(lock, caller, stated))) {
    const got = await world.outcomeOf('release', asked)
    const accepted = { lock, fence: stated, agent: agent.id, what: 'release' }
    if (got.kind === 'ok') world.reports.accepted.push(accepted)
    if (got.kind === 'ok' || got.kind === 'refused') world.lose(agent, lock)
  }
}

async function handOff(world: World, agent: SimAgent): Promise<void> {
  if (agent.held.size === 0) return
  const [lock, fence] = world.random.pick([...agent.held])
  const to = world.random.pick(world.agents)
  const asked = world.verbs.handOff(lock, world.callerOf(agent), to.id, fence)
  const got = await world.outcomeOf('handOff', asked)
  if (got.kind === 'ok') {
    world.reports.accepted.push({ lock, fence, agent: agent.id, what: 'hand off' })
    world.lose(agent, lock)
    to.held.set(lock, got.value.fence)
  }
}

/** A late writer: uses a fence that it had once. */
async function writeLate(world: World, agent: SimAgent): Promise<void> {
  if (agent.past.length === 0) return
  const { name: lock, fence } = world.random.pick(agent.past)
  if (lock.startsWith('task:') && world.random.chance(0.6)) {
    await endTask(world, agent, lock, fence)
    return
  }
  const asked = world.verbs.renew(lock, world.callerOf(agent), fence, 1_000)
  const got = await world.outcomeOf('writeLate', asked)
  if (got.kind === 'ok')
    world.reports.accepted.push({ lock, fence, agent: agent.id, what: 'renew' })
  const known = got.kind === 'ok'
  if (known || got.kind === 'unknown') {
    world.reports.renewed.push({ lock, fence, ttl_ms: 1_000, known })
  }
}

async function look(world: World, agent: SimAgent): Promise<void> {
  const id = anyTask(world)
  const task = await world.verbs.task(id)
  if (task) agent.read = { id, version: task.version, n: Number(task.metadata['n'] ?? 0) }
}

/** Adds one to the counter that it read, perhaps long ago. */
async function edit(world: World, agent: SimAgent): Promise<void> {
  if (!agent.read) return
  const { id, version, n } = agent.read
  const fence = agent.held.get(`task:${id}`)
  const fields = { metadata: { n: n + 1 } }
  const caller = world.callerOf(agent)
  const edits = world.memory.edits.get(id) ?? { known: 0, unknown: 0 }
  world.memory.edits.set(id, edits)
  for (const asked of sends(world, () => world.verbs.edit(id, version, fields, caller, fence))) {
    const got = await world.outcomeOf('edit', asked)
    if (got.kind === 'ok') edits.known += 1
    if (got.kind === 'unknown') edits.unknown += 1
    if (got.kind === 'ok' && fence !== undefined) {
      world.reports.accepted.push({ lock: `task:${id}`, fence, agent: agent.id, what: 'edit' })
    }
  }
}

async function startCommand(world: World, agent: SimAgent): Promise<void> {
  if (agent.held.size === 0 || agent.process === null) return
  const [lock, fence] = world.random.pick([...agent.held])
  const here = world.random.chance(0.8)
  const group = here ? world.machine.spawnGroup() : world.machine.elsewhere()
  world.groups.push(group)
  const asked = world.verbs.nameGroup(lock, fence, group, world.callerOf(agent))
  const got = await world.outcomeOf('startCommand', asked)
  if (got.kind === 'ok') {
    world.reports.accepted.push({ lock, fence, agent: agent.id, what: 'start a command under' })
  }
}

async function forceRelease(world: World, agent: SimAgent): Promise<void> {
  const [name] = namesFor(world)
  const asked = world.verbs.forceRelease(name!, world.callerOf(agent, true))
  await world.outcomeOf('forceRelease', asked)
}

/** Weights: what agents do most is done most. */
export const ACTIONS: [number, Action][] = [
  [3, create],
  [6, claimNext],
  [4, claim],
  [6, finish],
  [2, moveAny],
  [5, renew],
  [3, heartbeat],
  [6, acquire],
  [9, wait],
  [5, release],
  [3, handOff],
  [5, writeLate],
  [4, look],
  [5, edit],
  [1, startCommand],
  [1, forceRelease],
]
