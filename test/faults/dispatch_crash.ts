import type { Run, Task } from '../../src/core/schema/task.ts'
import { call } from '../../src/operations/call.ts'
import { listLocks } from '../../src/operations/locks.ts'
import type { Operation } from '../../src/operations/operation.ts'
import * as queue from '../../src/operations/queue.ts'
import * as runs from '../../src/operations/runs.ts'
import * as tasks from '../../src/operations/tasks.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { dispatching, type Dispatching, killAll, script } from '../support/dispatching.ts'
import type { Json } from '../doors/serving.ts'
import { callerOf } from '../support/helpers.ts'
import { type Running, TEST_CLI, until } from '../support/processes.ts'

/** One way to go wrong: who is killed, at which step, and in what order things go on. */
export interface Cell {
  /** Who dispatches: a daemon, or `leasehold dispatch` with no daemon beside it. */
  starter: 'daemon' | 'dispatch'
  step: string
  victims: ('agent' | 'runner' | 'starter')[]
  /** Whether what was stopped goes on before there is a daemon again, or behind it. */
  goesOn: 'first' | 'last'
}

export const labelOf = ({ starter, step, victims, goesOn }: Cell) =>
  `${victims.join('+').replace('starter', starter)} at ${step} (goes on ${goesOn})`

/** Prints until it may end, so that it is killed in the middle of it. */
const AGENT = 'begin; while [ ! -e "$OUT/go" ]; do echo line; sleep 0.05; done; finish'

/** A TTL so long that nothing here can be explained by its end. */
const CONFIG = { agents: { talker: script(AGENT) }, runs: { ttl_seconds: 30, grace_seconds: 0.3 } }

/** The store, looked at beside whoever serves it. */
export class Looking {
  private readonly store: Store

  constructor(all: Dispatching) {
    this.store = openStore(placeOf({ LEASEHOLD_DIR: all.place.state }, all.place.folder))
  }

  ask(operation: unknown, input: object): Promise<Json> {
    return call(this.store, operation as Operation, input as never, callerOf('test'))
  }

  add(id: string, user: string, more: object = {}): Promise<Json> {
    return this.ask(queue.add, { id, user, project: 'web', prompt: `do ${id}`, ...more })
  }

  task(id: string): Promise<Task> {
    return this.ask(tasks.get, { id })
  }

  async runs(task_id: string): Promise<Run[]> {
    return (await this.ask(runs.list, { task_id })).items
  }

  status(): Promise<Json> {
    return this.ask(queue.status, {})
  }

  async locks(): Promise<string[]> {
    const { items } = await this.ask(listLocks, {})
    const names = items.map(({ name }: { name: string }) => name)
    return names.filter((name: string) => !name.startsWith('leasehold:'))
  }

  async events(type: string): Promise<Json[]> {
    const found: Json[] = []
    for (let after = 0; ;) {
      const page = await this.store.events(after, 10_000)
      if (page.length === 0) return found
      found.push(...page.filter((event) => event.type === type))
      after = page.at(-1)!.position
    }
  }

  close(): Promise<void> {
    return this.store.close()
  }
}

/** Brings two tasks of one user through this accident, and says what came out wrong. */
export async function survive(cell: Cell): Promise<string[]> {
  const all = dispatching(CONFIG)
  const look = new Looking(all)
  try {
    await look.add('ada-1', 'ada')
    await look.add('ada-2', 'ada')
    if (cell.step === 'runner:exited' || cell.step === 'runner:told') all.write('go')
    const args = cell.starter === 'daemon' ? ['serve', '--port', '0'] : ['dispatch']
    const starter = await all.stoppedAt(cell.step, args)
    await killAll(await victimsOf(cell, all, starter))
    all.write('go')
    await goOn(cell, all, look, starter)
    return await faultsOf(cell, all, look)
  } catch (error) {
    return [(error as Error).message]
  } finally {
    await look.close()
    for (let left = all.processes(); left.length > 0; left = all.processes()) await killAll(left)
  }
}

async function victimsOf({ step, victims }: Cell, all: Dispatching, starter: Running) {
  const pids: number[] = []
  if (victims.includes('runner')) pids.push(...(await until('runner', () => some(all.runners()))))
  // In the middle of its output, where there is any.
  if (step === 'runner:running') await all.seen('start', 1)
  if (victims.includes('agent')) pids.push(...(await until('agent', () => some(all.agents()))))
  if (victims.includes('starter')) pids.push(starter.pid)
  return pids
}

const some = <T>(list: T[]) => list.length > 0 && list

/** Lets all that is stopped go on, now and whenever it stops again, until both tasks are over. */
async function goOn(cell: Cell, all: Dispatching, look: Looking, starter: Running): Promise<void> {
  const killed = cell.victims.includes('starter')
  const serving = killed || cell.starter === 'dispatch' ? all.serve({}, TEST_CLI) : undefined
  // One that dispatches still would start more meanwhile, which would stop too and be lost.
  if (cell.goesOn === 'last' && killed) await serving
  await until('both tasks are over', async () => {
    all.awaken()
    const both = [await look.task('ada-1'), await look.task('ada-2')]
    return both.every(({ status }) => status === 'done' || status === 'failed')
  })
  await serving
  await until('nothing is left of either', () => {
    all.awaken()
    return all.agents().length === 0 && all.runners().length === 0
  })
  if (!killed && cell.starter === 'dispatch') await killAll([starter.pid])
}

/** Everything that is not as the rules say, when all has come to rest. */
async function faultsOf(cell: Cell, all: Dispatching, look: Looking): Promise<string[]> {
  const faults = all.wrong()
  const expect = (what: string, found: unknown, wanted: unknown) => {
    const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)]
    if (a !== b) faults.push(`${what} is ${a}, not ${b}`)
  }
  // An agent that is killed has failed; when its runner goes too nobody can tell, and it is lost.
  const fails = cell.victims.includes('agent') && !cell.victims.includes('runner')
  const outcomes = (await look.runs('ada-1')).map(({ id, outcome }) => `${id} ${outcome}`)
  const first = `ada-1 (${outcomes.join(', ')})`
  expect(first, (await look.task('ada-1')).status, fails ? 'failed' : 'done')
  expect('ada-2', (await look.task('ada-2')).status, 'done')
  for (const task of ['ada-1', 'ada-2']) {
    const list = await look.runs(task)
    const last = list.at(-1)!
    const ends = all.lines('end').filter(({ fence }) => fence === last.fence).length
    expect(`${task}: ends under its last fence`, ends, task === 'ada-1' && fails ? 0 : 1)
    for (const run of list) {
      expect(`${run.id}: over`, run.ended_at !== null, true)
      await truthOf(all, run).catch((error: Error) => faults.push(error.message))
    }
    expect(
      `${task}: completed runs`,
      list.filter(({ status }) => status === 'completed').length,
      ends,
    )
  }
  const status = await look.status()
  expect('locks', await look.locks(), [])
  expect('user locks', status.user_locks, { active: 0, details: [] })
  expect('by project', [status.active.by_project, status.pool.used], [{}, 0])
  expect('pending', status.pending.total, 0)
  expect('slots used', status.active.slots_used, 0)
  const fences = (await look.events('run.started')).map(({ data }) => data.fence)
  expect('starts per fence', new Set(fences).size, fences.length)
  return faults
}

/** `meta.json`, where a runner came as far as to write one, says what the store says. */
async function truthOf(all: Dispatching, run: Run): Promise<void> {
  const { id, status } = run
  const said = () => {
    const meta = all.meta(id)
    return meta && { status: meta.status, ended: meta.ended_at !== null, lock: meta.lock_released }
  }
  await until(
    `meta.json of ${id} is true`,
    () => {
      const meta = said()
      return !meta || (meta.status === status && meta.ended && meta.lock)
    },
    3_000,
  ).catch(() => {
    throw new Error(`meta.json of ${id}, which is ${status}, says ${JSON.stringify(said())}`)
  })
}
