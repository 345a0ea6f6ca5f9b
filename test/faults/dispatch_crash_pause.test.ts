import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  dispatching,
  type Dispatching,
  HELD,
  killAll,
  script,
  signal,
} from '../support/dispatching.ts'

import { isAlive, stateOf, TEST_CLI, until } from '../support/processes.ts'
import { runFolder } from '../../src/machine/run_output.ts'

/** Longer than a runner takes to begin on a busy machine. */
const RUNS = { ttl_seconds: 4, grace_seconds: 0.3 }
/** Deaf to TERM, and with a child in another session. */
const DEAF = `trap "" TERM; begin
setsid sh -c 'echo $$ >> "$OUT/pids"; while :; do sleep 0.05; done' &
echo $$ >> "$OUT/pids"; until_there go; finish`

async function paused(agents: object = { deaf: script(DEAF) }) {
  const all = dispatching({ agents, runs: RUNS })
  await all.serve()
  await all.add('ada-1', 'ada')
  const pids = await until('both are there', () => {
    const found = all.read('pids').trim().split('\n').map(Number)
    return found.length === 2 && found
  })
  const [runner] = all.runners()
  signal(runner!, 'SIGSTOP')
  await until('it stops', () => stateOf(runner!) === 'T')
  return { all, pids, runner: runner! }
}

const firstRun = async (all: Dispatching) =>
  (await all.daemon.ok('run.list', { task_id: 'ada-1' })).items[0]

const filesOf = (all: Dispatching) => {
  const folder = runFolder(all.place.state, 'ada-1.1')
  const texts = ['meta.json', 'output.log'].map((name) => join(folder, name))
  return texts.map((path) => existsSync(path) && readFileSync(path, 'utf8'))
}

describe('a runner that is stopped past its TTL', () => {
  test('its agent is killed, then the task runs again; going on, it changes nothing', async () => {
    const { all, pids, runner } = await paused()
    const begun = performance.now()
    await all.seen('start', 2)
    expect(performance.now() - begun).toBeLessThan(4_000 + 300 + 3_000)
    expect(pids.some(isAlive)).toBe(false)
    expect(all.wrong()).toEqual([])
    expect(await firstRun(all)).toMatchObject({ status: 'lost', lock_released: true })
    await until('meta.json says so', () => all.meta('ada-1.1')?.status === 'lost')
    const [meta, log] = filesOf(all)
    const events = all.daemon.ok('task.get', { id: 'ada-1' })
    signal(runner, 'SIGCONT')
    await until('it ends', () => !isAlive(runner), 5_000)
    expect(filesOf(all)[1]).toBe(log)
    expect(JSON.parse(String(filesOf(all)[0]))).toMatchObject({
      status: 'lost',
      lock_released: true,
      ended_at: JSON.parse(String(meta)).ended_at,
    })
    expect(await all.task('ada-1')).toEqual(await events)
    all.write('go')
    await all.become('ada-1', 'done')
    expect(all.lines('end').map(({ run }) => run)).toEqual(['ada-1.2'])
  })

  test('never going on, it does not stay for ever', async () => {
    const { all, runner } = await paused()
    await until('it is gone', () => !isAlive(runner), 15_000)
    expect(await firstRun(all)).toMatchObject({ status: 'lost' })
    all.write('go')
    await all.become('ada-1', 'done')
  })

  test('nor when its run was settled while no dispatcher was there to see it', async () => {
    const { all, pids, runner } = await paused()
    await all.daemon.kill()
    await until('it was settled', async () => {
      const { items } = await all.place.ok(['queue', 'cleanup'])
      return items.length > 0 || !pids.some(isAlive)
    })
    await until('the run is lost', async () => {
      return (await all.place.ok(['runs', 'show', 'ada-1.1'])).status === 'lost'
    })
    all.write('go')
    await all.serve()
    await all.become('ada-1', 'done')
    expect(all.meta('ada-1.1')).toMatchObject({ status: 'lost', lock_released: true })
    await until('it is gone', () => !isAlive(runner), 10_000)
  })

  for (const step of ['runner:spec', 'runner:gated']) {
    test(`nor one that stopped at ${step}, before its agent began`, async () => {
      const all = dispatching({ runs: RUNS })
      await all.serve({ LEASEHOLD_STOP_AT: step }, TEST_CLI)
      await all.add('ada-1', 'ada')
      const [runner] = await until('it stops', () => all.stopped().length > 0 && all.stopped())
      await until('its run is lost', async () => (await firstRun(all)).status === 'lost')
      expect(all.lines('start')).toEqual([])
      await until('it is gone', () => !isAlive(runner!), 10_000)
    })
  }
})

test('a daemon that is stopped takes no run with it: runners go to the store', async () => {
  const agents = { held: script(HELD) }
  const all = dispatching({ agents, runs: { ttl_seconds: 6, grace_seconds: 0.3 } })
  await all.serve()
  await all.add('ada-1', 'ada')
  const [begun] = await all.seen('start', 1)
  await all.daemon.running.stop()
  const since = performance.now()
  await until('a TTL has passed', () => performance.now() - since > 7_000)
  expect(isAlive(begun!.pid)).toBe(true)
  all.write('go')
  all.daemon.running.kill('SIGCONT')
  await all.become('ada-1', 'done')
  expect(all.lines('start')).toHaveLength(1)
})

test('a runner that is killed before its agent began costs its user no whole TTL', async () => {
  const all = dispatching()
  await all.serve({ LEASEHOLD_STOP_AT: 'runner:gated' }, TEST_CLI)
  await all.add('ada-1', 'ada')
  const [runner] = await until('it stops', () => all.stopped().length > 0 && all.stopped())
  await killAll([runner!])
  // The TTL is a minute; the dispatcher is the runner's parent, and knows at once.
  await until(
    'the next run begins',
    () => {
      all.awaken()
      return all.lines('start').length > 0
    },
    10_000,
  )
  expect(all.wrong()).toEqual([])
})

describe('poison', () => {
  test('a task whose agent kills its runner is put aside after three lost runs', async () => {
    const agents = { poison: script('begin; kill -9 $PPID; forever'), held: script(HELD) }
    const all = dispatching({ agents, runs: RUNS })
    all.write('go')
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.add('ada-2', 'ada', { agent_command: 'held' })
    await all.become('ada-1', 'failed')
    await all.become('ada-2', 'done')
    const { items } = await all.daemon.ok('run.list', { task_id: 'ada-1' })
    const ends = items.map(({ status }: { status: string }) => status)
    expect(ends).toEqual(['lost', 'lost', 'lost'])
    expect(all.wrong()).toEqual([])
    await until('nothing is left', () => all.agents().length + all.runners().length === 0)
    for (const { id } of items) {
      await until('meta.json is true', () => all.meta(id)?.status === 'lost', 5_000)
    }
    // A person may look at it, mend it, and try again.
    await all.place.ok(['queue', 'retry', 'ada-1'])
    await all.become('ada-1', 'failed')
    expect((await all.task('ada-1')).attempts).toBe(6)
  })
})
