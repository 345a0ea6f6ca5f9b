import type { Run } from '../../src/core/schema/task.ts'
import { expect, test } from 'vitest'
import { dispatching, type Dispatching, killAll, script } from '../support/dispatching.ts'
import { ROUNDS, until } from '../support/processes.ts'
import { Random } from '../simulation/random.ts'
import { Looking } from './dispatch_crash.ts'

const USERS = ['ada', 'ben', 'cem', 'dan']
const TASKS = 5
const KILLS = 12
const CONFIG = {
  agents: { worker: script('begin; echo line; sleep 0.1; echo line; finish') },
  runs: { ttl_seconds: 5, grace_seconds: 0.3 },
  slots: { max: 3 },
}

/** Kills whoever chance picks, again and again, while tasks are run; a new daemon each time. */
async function storm(all: Dispatching, random: Random): Promise<string[]> {
  const killed: string[] = []
  const { port } = await all.serve()
  for (let i = 0; i < KILLS; i += 1) {
    const enough = all.lines().length + 1 + random.below(4)
    await until('some go on', () => all.lines().length >= enough || isOver(all))
    const whom = random.pick(['agent', 'runner', 'daemon', 'runner+daemon', 'agent+daemon'])
    const pids = [
      ...(whom.includes('agent') ? random.some(all.agents(), 1) : []),
      ...(whom.includes('runner') ? random.some(all.runners(), 1) : []),
      ...(whom.includes('daemon') ? [all.daemon.running.pid] : []),
    ]
    killed.push(whom)
    await killAll(pids)
    if (whom.includes('daemon')) await all.serve({}, undefined, ['--port', String(port)])
  }
  return killed
}

const isOver = (all: Dispatching) =>
  new Set(all.lines('end').map(({ task }) => task)).size === USERS.length * TASKS

/** A task that is done was finished once under its last fence; one put aside was lost for good. */
function faultOf(all: Dispatching, task: { id: string; status: string }, runs: Run[]) {
  const last = runs.at(-1)!
  const ends = all.lines('end').filter(({ fence }) => fence === last.fence).length
  const lost = runs.filter(({ status }) => status === 'lost').length
  const completed = runs.filter(({ status }) => status === 'completed').length
  const open = runs.filter(({ ended_at }) => ended_at === null).length
  const done = task.status === 'done' && ends === 1 && completed === 1
  const aside = task.status === 'failed' && lost >= 3 && completed === 0
  if (open === 0 && (done || aside)) return []
  return [`${task.id} is ${task.status}: ${ends} ends, ${JSON.stringify(runs)}`]
}

for (let round = 0; round < 2 * ROUNDS - 1; round += 1) {
  const seed = Number(process.env['SEED'] ?? 1000 + round)
  test(`${KILLS} kills at random amid 20 tasks: all is settled once (seed ${seed})`, async () => {
    const all = dispatching(CONFIG)
    const look = new Looking(all)
    try {
      for (const user of USERS) {
        // What an agent's death counts as is not the question here.
        for (let i = 0; i < TASKS; i += 1) await look.add(`${user}-${i}`, user, { retries: 50 })
      }
      const killed = await storm(all, new Random(seed))
      const status = await until(
        'all is over',
        async () => {
          const now = await look.status()
          return now.pending.total + now.active.slots_used === 0 && now
        },
        45_000,
      )
      expect(status.user_locks).toEqual({ active: 0, details: [] })
      expect([status.active.by_project, status.pool.used]).toEqual([{}, 0])
      expect(await look.locks()).toEqual([])
      const faults = all.wrong()
      for (const user of USERS) {
        for (let i = 0; i < TASKS; i += 1) {
          const task = await look.task(`${user}-${i}`)
          faults.push(...faultOf(all, task, await look.runs(task.id)))
        }
      }
      expect(faults, killed.join(' ')).toEqual([])
      await until('nobody is left', () => all.agents().length + all.runners().length === 0)
      const starts = (await look.events('run.started')).map(({ data }) => data.fence)
      expect(new Set(starts).size).toBe(starts.length)
      await expectTrueFolders(all, look)
      expect(await all.place.ok(['db', 'check'])).toMatchObject({ ok: true })
    } finally {
      await look.close()
    }
  })
}

/** Every `meta.json` says what the store says. */
async function expectTrueFolders(all: Dispatching, look: Looking): Promise<void> {
  const untrue = async () => {
    const found: string[] = []
    for (const { task } of all.lines('start')) {
      for (const { id, status } of await look.runs(task)) {
        const meta = all.meta(id)
        const isTrue = !meta || (meta.status === status && meta.ended_at && meta.lock_released)
        if (!isTrue) found.push(`${id} is ${status}, and meta.json says ${meta.status}`)
      }
    }
    return [...new Set(found)]
  }
  await until('folders are true', async () => (await untrue()).length === 0, 4_000).catch(() => 0)
  expect(await untrue()).toEqual([])
}
