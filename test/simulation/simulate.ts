import type { Lease } from '../../src/core/schema/lock.ts'
import { type Event, factsOf } from '../../src/core/event.ts'
import { chainFault, GENESIS } from '../../src/stores/writer/chain.ts'
import type { Base, Head } from '../../src/stores/port.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { type Action, ACTIONS as AGENT_ACTIONS } from './actions.ts'
import { BACKENDS, type StoreName } from './backends.ts'
import { mustHold } from './broken.ts'
import { checkCalls, Openings } from './lines_live.ts'
import { PATH_ACTIONS } from './path_actions.ts'
import { checkReservations } from './path_rows.ts'
import { checkCounts } from './counts.ts'
import { QUEUE_ACTIONS } from './queue_actions.ts'
import { checkTurns } from './queue_live.ts'
import { lookAt } from './queue_look.ts'
import { checkQueue } from './queue_rows.ts'
import type { Random } from './random.ts'
import { checkRows } from './rows.ts'
import { emptyMind, World } from './world.ts'

const ACTIONS = [...AGENT_ACTIONS, ...QUEUE_ACTIONS]

export interface Plan {
  seed: number
  steps: number
  store: StoreName
}

/**
 * One run of agents that crash, sleep, repeat themselves and write late, on virtual time, over the
 * production store and rules. Throws `Broken` when a promise did not hold, with the command that
 * repeats the run.
 */
export async function simulate(plan: Plan): Promise<Map<string, number>> {
  const { seed, steps, store } = plan
  const dir = temporaryFolder()
  const world = new World(seed, () => BACKENDS[store](dir))
  const watch = new Watch(world)
  // Four looks more per step: where rows are in memory, they are cheap.
  const openings = store === 'memory' ? new Openings(world) : undefined
  // Whose turn it is takes a dozen looks: dear where rows are not in memory.
  const turnsEvery = store === 'sqlite' || store === 'postgres' ? 4 : 1
  let step = 0
  try {
    for (; step < steps; step += 1) {
      shake(world)
      world.history.beginStep()
      const isReplyLost = world.backends[world.writer]!.faults.includes('lost_reply')
      await openings?.beforeStep()
      await act(world)
      await openings?.afterStep(isReplyLost)
      await watch.check()
      if (step % turnsEvery === 0) await checkTurns(world)
    }
    await settle(world, watch)
    await checkCounts(world.stores[0]!)
  } catch (error) {
    const again = `npm run sim -- --seed ${seed} --steps ${steps} --store ${store}`
    if (error instanceof Error) error.message += ` (at step ${step}; again: ${again})`
    throw error
  } finally {
    for (const each of world.stores) await each.close()
  }
  return world.counts
}

/** What the world does to everybody between two steps. */
function shake(world: World): void {
  const { random, machine } = world
  world.advance(random.chance(0.04) ? random.below(40_000) : random.below(400))
  world.writer = random.below(world.stores.length)
  if (random.chance(0.03)) machine.jumpWall(random.below(10 ** 9) - 10 ** 9 / 2)
  if (random.chance(0.05)) crash(world)
  if (random.chance(0.03)) crashDispatcher(world)
  if (random.chance(0.05) && world.runners.length > 0) machine.kill(random.pick(world.runners))
  if (random.chance(0.1)) random.pick(world.agents).asleep = random.below(60)
  if (random.chance(0.1) && world.groups.length > 0) machine.endGroup(random.pick(world.groups))
  if (random.chance(0.05)) machine.canStop = !machine.canStop
  if (random.chance(0.01)) reboot(world)
  const { faults } = world.backends[world.writer]!
  faults.length = 0
  if (random.chance(0.08)) faults.push(random.pick(['lost_reply', 'fail', 'again'] as const))
}

function crash(world: World): void {
  const { random, machine } = world
  const agent = random.pick(world.agents)
  if (agent.process === null) return
  machine.kill(agent.process)
  agent.process = machine.spawn()
  // One that comes back knows nothing; or it was only thought dead, and goes on where it was.
  if (random.chance(0.5)) Object.assign(agent, emptyMind())
}

function crashDispatcher({ random, machine, dispatchers }: World): void {
  const dispatcher = random.pick(dispatchers)
  machine.kill(dispatcher.process)
  dispatcher.process = machine.spawn()
}

function reboot(world: World): void {
  const { random, machine } = world
  machine.reboot(random.below(10 ** 7))
  world.history.rebooted(world.uptime_ms)
  for (const agent of world.agents) if (agent.process) agent.process = machine.spawn()
  for (const dispatcher of world.dispatchers) dispatcher.process = machine.spawn()
}

/** Some agents act, all at once; the rest sleep or wait for another step. */
async function act(world: World): Promise<void> {
  const { random, chance } = world
  const acting = random.some(world.agents, 1 + random.below(4)).map(async (agent) => {
    if (agent.asleep > 0) {
      agent.asleep -= 1
      return
    }
    await pickBy(random, ACTIONS)(world, agent)
  })
  const editing = chance.some(world.agents, chance.below(2)).map(async (agent) => {
    if (agent.asleep === 0) await pickBy(chance, PATH_ACTIONS)(world, agent)
  })
  await Promise.all([...acting, ...editing])
}

function pickBy(random: Random, actions: [number, Action][]): Action {
  let at = random.below(actions.reduce((sum, [weight]) => sum + weight, 0))
  return actions.find(([weight]) => (at -= weight) < 0)![1]
}

/** Follows a store from commit to commit. */
class Watch {
  private position = 0
  private hash = GENESIS
  private leases: Lease[] = []

  constructor(private readonly world: World) {}

  async check(): Promise<void> {
    const backend = this.world.backends[this.world.writer]!
    for (let tries = 1; ; tries += 1) {
      const events = await backend.events(this.position, 100_000)
      const end = events.at(-1)?.position ?? this.position
      const seen = await backend.lookOnce((base, head) => {
        // A command was stopped meanwhile and its lock freed: look again, at both together.
        if (head.position !== end && tries < 3) return false
        this.judge(events, base, head)
        return true
      })
      if (seen) return
    }
  }

  private judge(events: Event[], base: Base, head: Head): void {
    const { history, memory, machine, agents } = this.world
    this.followEvents(events, head)
    this.judgeReports()
    const ids = agents.map((agent) => agent.id)
    checkRows({ base, head, history, memory, machine, agents: ids })
    checkQueue(lookAt(base), this.world.used)
    checkReservations(base)
    checkCalls(base, head)
    this.leases = base.scan('leases_by_expiry', '', undefined, 100_000) as Lease[]
    this.boundRuns(head)
  }

  /** Until when runs may last. Known when this boot has written: then its clock is the store's. */
  private boundRuns(head: Head): void {
    const { history, machine, uptime_ms } = this.world
    if (head.boot !== machine.boot) return
    const now = machine.monotonicMs() + head.offset_ms
    for (const { name, fence, terms } of this.leases) {
      if (!terms || terms.until_ms === null) continue
      history.bounded(name, fence, uptime_ms + terms.until_ms - now)
    }
  }

  /** S10: no gap, nothing changed, and the newest is where the store says it is. */
  private followEvents(events: Event[], head: Head): void {
    const fault = chainFault(events, { position: this.position, hash: this.hash }, head)
    mustHold('S10', fault === undefined, () => fault!)
    this.position = head.position
    this.hash = head.hash
    this.checkDeaths(events)
    this.world.history.follow(events, this.world.uptime_ms)
  }

  /** A living process is never robbed. */
  private checkDeaths(events: Event[]): void {
    for (const event of events.filter(({ type }) => type === 'lease.died')) {
      const lease = this.leases.find(({ fence }) => fence === factsOf(event).fence)
      if (!lease) continue
      const dead = lease.process && this.world.machine.process(lease.process) === 'dead'
      mustHold('S1', dead === true, () => `${lease.name} was freed though its process lives`)
    }
  }

  private judgeReports(): void {
    const { world } = this
    const { history, uptime_ms } = world
    const reports = world.takeReports()
    for (const write of reports.accepted) history.accepted(write, uptime_ms)
    for (const ask of reports.askedFor) history.askedFor(ask)
    for (const { task, fence, agent } of reports.finished) history.finished(task, fence, agent)
    for (const { lock, fence, ttl_ms, known } of reports.renewed) {
      if (history.locks.get(lock)?.fence === fence) history.renewed(lock, ttl_ms, uptime_ms, known)
    }
  }
}

/** L1 and the end of every run: when all is quiet, nothing is left held, waiting or in progress. */
async function settle(world: World, watch: Watch): Promise<void> {
  for (const agent of world.agents) if (agent.process) world.machine.kill(agent.process)
  for (const { process } of world.dispatchers) world.machine.kill(process)
  for (const process of world.runners) world.machine.kill(process)
  for (const group of world.groups) world.machine.endGroup(group)
  world.machine.canStop = true
  for (const backend of world.backends) backend.faults.length = 0
  for (const ms of [0, 100_000, 2_000, 2_000]) {
    world.history.beginStep()
    world.advance(ms)
    await world.verbs.sweep()
    await watch.check()
  }
  const left = await world.stores[0]!.read((view) => [
    ...view.scan('leases_by_expiry', ''),
    ...view.scan('tickets', ''),
    ...view.scan('tasks_with_status', 'in_progress'),
  ])
  mustHold('L1', left.length === 0, () => `left over when all was quiet: ${JSON.stringify(left)}`)
}
