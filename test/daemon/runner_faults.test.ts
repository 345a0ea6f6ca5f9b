import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { servingPlace, startDaemon } from '../doors/serving.ts'
import { isAlive, TEST_CLI, until } from '../support/processes.ts'
import { type Claimed, DEAF, FOREVER, runners, type Runners } from './runner_agent.ts'

/** A runner has to begin within it, also on a busy machine. */
const TTL_MS = 4_000

/** The files that a process has loaded as code. */
const mapsOf = (pid: number) => readFileSync(`/proc/${pid}/maps`, 'utf8')

/** Nobody else can write until this is called. */
function holdStore(all: Runners): () => void {
  const db = openDatabase(join(all.place.state, 'leasehold.db'), { readOnly: false })
  db.exec('BEGIN IMMEDIATE')
  return () => {
    db.exec('ROLLBACK')
    db.close()
  }
}

describe('at most one start per fence (S12)', () => {
  const RAN = 'echo ran >> ran'
  const ran = (all: Runners) => {
    const path = all.place.path('ran')
    return existsSync(path) ? readFileSync(path, 'utf8').match(/ran/g)!.length : 0
  }

  test('a stale fence: the command never runs, and meta.json says why', async () => {
    const all = await runners()
    await all.through('true')
    const claimed = await all.claim()
    const spec = all.spec({ ...claimed, fence: claimed.fence - 1 }, RAN)
    expect(await all.start(spec).ended).toMatchObject({ code: 5 })
    expect(ran(all)).toBe(0)
    expect(all.meta(spec)).toMatchObject({ pid: null, started_at: null })
    expect(all.meta(spec)!.reason).toMatch(/^not started: Fence \d+ of task:2 is stale/)
    expect((await all.after(claimed)).run).toMatchObject({ status: 'running', begun_at: null })
  })

  async function startTwice(env: Record<string, string> = {}) {
    const all = await runners()
    const claimed = await all.claim()
    const body = `${RAN}; while [ ! -e over ]; do sleep 0.05; done`
    const first = all.start(all.spec(claimed, body), env)
    // It lets its command go, and then writes down that it did.
    await until('the first runs, and says so', () => {
      return ran(all) === 1 && all.meta(all.spec(claimed, ''))?.started_at
    })
    const meta = readFileSync(`${all.spec(claimed, '').folder}/meta.json`, 'utf8')
    const second = all.start(all.spec(claimed, body), env)
    await Promise.race([second.ended, until('both run', () => ran(all) === 2)])
    const now = readFileSync(`${all.spec(claimed, '').folder}/meta.json`, 'utf8')
    writeFileSync(all.place.path('over'), '')
    const [one, two] = await Promise.all([first.ended, second.ended])
    return { starts: ran(all), codes: [one.code, two.code], untouched: meta === now, claimed, all }
  }

  test('a second runner for the same fence starts nothing and leaves all alone', async () => {
    const { starts, codes, untouched, claimed, all } = await startTwice()
    expect({ starts, codes, untouched }).toEqual({ starts: 1, codes: [0, 5], untouched: true })
    expect((await all.after(claimed)).run).toMatchObject({ status: 'completed' })
  })

  test('the test would see a second start (planted S12)', async () => {
    const { starts } = await startTwice({ LEASEHOLD_PLANT: 'S12' })
    expect(starts).toBe(2)
  })

  test('two runners, both stopped behind their gates: one gets to run', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const spec = all.spec(claimed, RAN)
    const both = await Promise.all([1, 2].map(() => all.stoppedAt('runner:gated', spec)))
    for (const each of both) each.kill('SIGCONT')
    const codes = (await Promise.all(both.map((each) => each.ended))).map(({ code }) => code!)
    expect(new Set(codes)).toEqual(new Set([0, 5]))
    expect(ran(all)).toBe(1)
    expect(all.meta(spec)).toMatchObject({ status: 'completed', exit_code: 0 })
  })

  for (const [what, text] of [
    ['nothing', ''],
    ['half a spec', '{"run_id":"1.1","argv":["touch","ran"]'],
    ['JSON that is no spec', '{"run_id":"1.1","argv":["touch","ran"]}'],
    ['a list', '[]'],
  ] as const) {
    test(`given ${what}, a runner does nothing and exits with 2`, async () => {
      const all = await runners()
      expect(await all.start(text).ended).toMatchObject({ code: 2, out: '', err: '' })
      expect(existsSync(join(all.place.state, 'runs'))).toBe(false)
    })
  }
})

describe('kill -9 of a runner', () => {
  /** What is committed after the death: a sweep, and whatever that found. */
  async function settled(all: Runners, claimed: Claimed) {
    await until('the run is settled', async () => {
      await all.store.write(() => undefined)
      return (await all.after(claimed)).run.ended_at
    })
    return all.after(claimed)
  }

  test('while its command runs: all of it goes, and the task is back in the queue', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const spec = all.spec(claimed, `trap "" TERM; ${DEAF}\necho $$ > self; ${FOREVER}`)
    const running = all.start(spec)
    const pids = [await all.pidIn('deaf'), await all.pidIn('self')]
    running.kill('SIGKILL')
    const { run, task } = await settled(all, claimed)
    expect(pids.some(isAlive)).toBe(false)
    expect(run).toMatchObject({ status: 'lost', outcome: 'died' })
    expect(task).toMatchObject({ status: 'todo', queue: { lost: 1 } })
    expect(all.meta(spec)).toMatchObject({ status: 'running', pid: pids[1] })
  })

  for (const [step, ran, lost] of [
    ['runner:gated', false, undefined],
    ['runner:started', false, 1],
    ['runner:running', true, 1],
    ['runner:exited', true, 1],
    ['runner:told', true, 0],
  ] as const) {
    test(`at ${step}: the command ${ran ? 'ran once' : 'never ran'}, accounted for`, async () => {
      const all = await runners()
      const claimed = await all.claim()
      const spec = all.spec(claimed, 'touch ran; echo done')
      const running = await all.stoppedAt(step, spec)
      if (ran) await until('it ran', () => existsSync(all.place.path('ran')))
      running.kill('SIGKILL')
      await running.ended
      await until('nothing is left', () => all.place.left().length === 0)
      expect(existsSync(all.place.path('ran'))).toBe(ran)
      if (lost === undefined) {
        // The lease is still the dispatcher's, which lives.
        expect((await all.after(claimed)).run).toMatchObject({ status: 'running', begun_at: null })
        return
      }
      const { run, task } = await settled(all, claimed)
      expect(run.status).toBe(lost === 0 ? 'completed' : 'lost')
      expect(task).toMatchObject({ status: lost === 0 ? 'done' : 'todo', queue: { lost } })
    })
  }
})

describe('whoever answers', () => {
  test('the daemon is asked; when it is killed the run goes on by the store', async () => {
    const place = servingPlace()
    const all = await runners(place)
    const program = [process.execPath, TEST_CLI]
    const daemon = await startDaemon(place, { program })
    const claimed = await all.claim({}, TTL_MS)
    const body = 'echo $$ > self; while [ ! -e over ]; do sleep 0.05; done'
    const running = all.start(all.spec(claimed, body, { ttl_ms: TTL_MS }))
    const pid = await all.pidIn('self')
    expect(mapsOf(running.pid)).not.toContain('sqlite')
    await daemon.kill()
    const begun = performance.now()
    await until('the TTL has passed', () => performance.now() - begun > TTL_MS)
    expect(isAlive(pid)).toBe(true)
    expect(mapsOf(running.pid)).toContain('sqlite')
    writeFileSync(place.path('over'), '')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect((await all.after(claimed)).run).toMatchObject({ status: 'completed' })
  })

  test('nobody answers while the store is busy: asked again, with one effect', async () => {
    const all = await runners()
    const claimed = await all.claim()
    const env = { ...all.at, LEASEHOLD_BUSY_TIMEOUT_MS: '50' }
    const spec = all.spec(claimed, 'echo ran >> ran', { place: env })
    const running = await all.stoppedAt('runner:gated', spec)
    const release = holdStore(all)
    running.kill('SIGCONT')
    // Long enough for several tries that find it busy.
    const begun = performance.now()
    await until('it tried', () => performance.now() - begun > 500)
    expect(existsSync(all.place.path('ran'))).toBe(false)
    release()
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(readFileSync(all.place.path('ran'), 'utf8')).toBe('ran\n')
    const events = await all.store.events(0, 1000)
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(1)
  })

  test('nobody answers for two thirds of the TTL: the gate stays closed', async () => {
    const all = await runners()
    const claimed = await all.claim({}, 1_500)
    const spec = all.spec(claimed, 'touch ran', { ttl_ms: 1_500 })
    const running = await all.stoppedAt('runner:gated', spec)
    const release = holdStore(all)
    running.kill('SIGCONT')
    expect(await running.ended).toMatchObject({ code: 75 })
    release()
    expect(existsSync(all.place.path('ran'))).toBe(false)
    expect(all.meta(spec)).toMatchObject({ status: 'lost', pid: null, started_at: null })
  })

  test('a run that was settled meanwhile: meta.json has the word of the store', async () => {
    const all = await runners()
    const claimed = await all.claim({}, TTL_MS)
    const spec = all.spec(claimed, 'true', { ttl_ms: TTL_MS })
    const running = await all.stoppedAt('runner:exited', spec)
    await until('its lease is over', async () => (await all.after(claimed)).run.ended_at)
    running.kill('SIGCONT')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(all.meta(spec)).toMatchObject({ status: 'lost', exit_code: 0, lock_released: true })
  })
})
