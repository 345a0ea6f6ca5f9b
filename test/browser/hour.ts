import { call } from '../../src/operations/call.ts'
import { operationNamed } from '../../src/operations/registry.ts'
import type { Claim } from '../../src/core/tasks/claim.ts'
import { isRefusal, Refusal } from '../../src/core/refusal.ts'
import type { Random } from '../simulation/random.ts'
import { callerOf, MachineSim, openSqlite } from '../support/helpers.ts'
import { ADMIN, QueueVerbs } from '../support/queue_verbs.ts'

/** Everything at once, at random: over HTTP while a page looks on, or an hour of it in a moment. */

const STEPS = 600
/** At most, from one step to the next: 600 of them take about an hour. */
const STEP_SECONDS = 13
const SLOTS = 2

interface World {
  ask: (operation: string, input: object) => Promise<unknown>
  /** Gets in line for a lock, for a moment. */
  wait: (name: string, agent: string) => unknown
}

/** One random thing; most of them are refused now and then, which is a thing that happens too. */
export async function happen({ ask, wait }: World, random: Random, i: number): Promise<void> {
  const agent = `agent-${random.below(8)}`
  const name = `lock:${random.below(6)}`
  const id = `T-${random.below(20)}`
  const user = random.pick(['ada', 'bob', 'cy'])
  const things: [string, object][] = [
    ['lock.acquire', { name, agent, ttl_seconds: 1 + random.below(2) * 600 }],
    ['lock.acquire', { name, agent, ttl_seconds: 600 }],
    ['lock.release', { name, agent }],
    ['lock.force_release', { name, reason: 'by chance' }],
    ['task.create', { id: `T-${i % 20}`, title: `Task ${i}`, project: 'api', user: 'ada' }],
    ['task.claim', { id, agent }],
    ['task.status', { id, status: random.pick(['review', 'failed', 'done']), agent }],
    ['queue.add', { prompt: `Run ${i}`, project: 'web', user }],
    ['queue.add', { prompt: `Never ${i}`, project: 'nowhere', user: 'dot' }],
    ['memory.put', { key: `note.${random.below(9)}`, content: `Note ${i}`, agent }],
    ['queue.limit', { user: 'ada', weight: 1 + random.below(4) }],
    ['reserve.add', { paths: [`src/${random.below(9)}/**`], project: 'web', agent }],
  ]
  if (i % 9 === 0) void wait(name, agent)
  const [operation, input] = random.pick(things)
  await ask(operation, input)
}

const unlessRefused = (error: unknown) => {
  if (!(error instanceof Refusal)) throw error
}

/** Plays an hour that ends now into the store at `state`, which nobody has open. */
export async function playHour(state: string, random: Random): Promise<void> {
  const steps = Array.from({ length: STEPS }, () => 1_000 * random.below(STEP_SECONDS))
  const machine = new MachineSim()
  machine.jumpWall(Date.now() - steps.reduce((sum, ms) => sum + ms, 0) - machine.wallMs())
  // What others can read is refused by the daemon.
  process.umask(0o077)
  const store = openSqlite(state, machine)
  const verbs = new QueueVerbs(store)
  const dispatcher = machine.spawn()
  await verbs.register('sim', { process: dispatcher, slots_max: SLOTS, projects: ['web'] })
  const running: Claim[] = []
  const ask = async (operation: string, input: object) =>
    call(store, operationNamed.get(operation)!, { ...input }, ADMIN).catch(unlessRefused)
  const wait = (name: string, agent: string) =>
    verbs.wait(name, callerOf(agent), `${name} ${machine.wallMs()}`).catch(unlessRefused)
  for (const [i, ms] of steps.entries()) {
    machine.advance(ms)
    await happen({ ask, wait }, random, i)
    if (running.length > 0 && random.chance(0.5)) {
      await verbs.finishRun(running.shift()!.run, { exit_code: random.below(2) }).catch(wasLost)
    }
    const claim = await verbs.dispatch('sim', machine.spawn())
    if (claim) running.push(claim)
    if (i % 100 === 0) {
      const process = machine.spawn()
      await verbs.take(`brief:${i}`, callerOf(`mortal-${i}`, { process }), { process })
      machine.kill(process)
    }
  }
  for (const { run } of running) await verbs.finishRun(run).catch(wasLost)
  machine.kill(dispatcher)
  await verbs.sweep()
  await store.close()
}

/** It took longer than its lease. */
const wasLost = (error: unknown) => {
  if (!isRefusal(error, 'lease_expired') && !isRefusal(error, 'fence_stale')) throw error
}
