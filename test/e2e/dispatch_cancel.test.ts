// reason: setImmediate lets go of the loop between two looks, and waits for nothing
import { setImmediate } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { holdingLease } from '../../src/core/locks/standing.ts'
import type { Event } from '../../src/core/event.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { dispatching, type Dispatching, HELD, script } from '../support/dispatching.ts'
import { isAlive, ROUNDS, TEST_CLI, until } from '../support/processes.ts'

/** Deaf to all but KILL, with a child, a grandchild, and a grandchild in another session. */
const DEAF = `
trap "" TERM INT HUP
begin
sh -c 'trap "" TERM; echo $$ >> "$OUT/pids"; sh -c "echo \\$\\$ >> $OUT/pids
  while :; do sleep 0.05; done" & while :; do sleep 0.05; done' &
setsid sh -c 'trap "" TERM; echo $$ >> "$OUT/pids"; while :; do sleep 0.05; done' &
echo $$ >> "$OUT/pids"
forever`

const GRACE_MS = 1_000

async function deafRun(agents: object = { deaf: script(DEAF) }) {
  const all = dispatching({ agents, runs: { grace_seconds: GRACE_MS / 1000 }, slots: { max: 1 } })
  await all.serve()
  await all.add('ada-1', 'ada')
  await all.add('ada-2', 'ada', { agent_command: 'held' })
  const pids = await until('all four are there', () => {
    const found = all.read('pids').trim().split('\n').map(Number)
    return found.length === 4 && found
  })
  return { all, pids }
}

/** What is wrong at any moment: a lock, limit or slot that is free while one of these lives. */
class Watch {
  readonly wrong: string[] = []
  looks = 0
  private over = false
  private readonly watching: Promise<unknown>
  private readonly store: Store

  constructor(all: Dispatching, pids: number[]) {
    const store = openStore(placeOf({ LEASEHOLD_DIR: all.place.state }, all.place.folder))
    this.store = store
    onTestFinished(() => this.end().finally(() => store.close()))
    const see = async (what: string, isFree: () => Promise<boolean>) => {
      while (!this.over) {
        // First the lock, then the processes: whoever lives now lived when it was free.
        const free = await isFree()
        const alive = pids.filter(isAlive)
        if (free && alive.length > 0) this.wrong.push(`${what} is free, ${alive.join()} alive`)
        this.looks += 1
        await setImmediate()
      }
    }
    const status = () => all.daemon.ok('queue.status')
    const lock = { name: 'task:ada-1' }
    this.watching = Promise.all([
      see('lock (store)', () => store.read((view) => !holdingLease(view, lock.name))),
      see('lock (daemon)', async () => !(await all.daemon.ok('lock.status', lock)).is_locked),
      see('user', async () => {
        const { details } = (await status()).user_locks
        return !details.some(({ task_id }: { task_id: string }) => task_id === 'ada-1')
      }),
      see('slot', async () => all.lines('start').some(({ task }) => task === 'ada-2')),
    ])
  }

  /** What was recorded, in order. */
  async events(): Promise<Event[]> {
    return this.store.events(0, 10_000)
  }

  async end(): Promise<void> {
    this.over = true
    await this.watching
  }
}

describe('cancel of a run that does not want to end', () => {
  for (const [how, args] of [
    ['queue cancel', ['--force', 'queue', 'cancel', 'ada-1']],
    ['queue release-user', ['queue', 'release-user', 'ada']],
    ['lock force-release', ['lock', 'force-release', 'task:ada-1']],
    ['task cancel', ['--force', 'task', 'cancel', 'ada-1']],
  ] as const) {
    test(`${how}: all of it goes within the grace, and only then is anything free`, async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const { all, pids } = await deafRun({ deaf: script(DEAF), held: script(HELD) })
        const watch = new Watch(all, pids)
        await until('the watch is on', () => watch.looks > 20)
        const before = (await watch.events()).length
        const asked = all.place.ok([...args])
        await until('all are gone', () => !pids.some(isAlive))
        const gone_at = Date.now()
        await asked
        // From when it was recorded: how long a busy machine takes to start a command is its own.
        const [recorded] = (await watch.events()).slice(before)
        const took_ms = gone_at - Date.parse(recorded!.at)
        await all.seen('start', 2)
        await watch.end()
        expect(watch.wrong).toEqual([])
        expect(took_ms).toBeGreaterThan(GRACE_MS)
        expect(took_ms).toBeLessThan(GRACE_MS + 1_000)
        const [run] = (await all.daemon.ok('run.list', { task_id: 'ada-1' })).items
        const status = how === 'lock force-release' ? 'lost' : 'cancelled'
        expect(run).toMatchObject({ status, lock_released: true })
        await until('meta.json says so', () => all.meta('ada-1.1')?.status === status)
        await until('its runner is gone', () => all.runners().length === 1, 5_000)
        all.write('go')
      }
    })
  }

  for (const step of ['spec', 'gated', 'started', 'running', 'exited']) {
    test(`with its runner stopped at runner:${step}: it is cancelled, and stays so`, async () => {
      const all = dispatching({ agents: { held: script(HELD) }, runs: { grace_seconds: 0.3 } })
      if (step === 'exited') all.write('go')
      await all.serve({ LEASEHOLD_STOP_AT: `runner:${step}` }, TEST_CLI)
      await all.add('ada-1', 'ada')
      await until('the runner stops', () => all.stopped().length > 0)
      const before = step === 'running' ? await all.seen('start', 1) : all.lines('start')
      const task = await all.place.ok(['--force', 'queue', 'cancel', 'ada-1'])
      expect(task).toMatchObject({ status: 'cancelled' })
      const free = { is_locked: false }
      expect(await all.place.ok(['lock', 'status', 'task:ada-1'])).toMatchObject(free)
      expect(all.agents().filter((pid) => before.some((line) => line.pid === pid))).toEqual([])
      await until('nothing is left of it', () => {
        all.awaken()
        return all.runners().length + all.agents().length === 0
      })
      expect(all.lines('start')).toEqual(before)
      expect(await all.task('ada-1')).toMatchObject({ status: 'cancelled' })
      const [run] = (await all.daemon.ok('run.list', { task_id: 'ada-1' })).items
      expect(run).toMatchObject({ status: 'cancelled', lock_released: true })
      await until('meta.json says so', () => {
        const meta = all.meta('ada-1.1')
        return !meta || (meta.status === 'cancelled' && meta.ended_at && meta.lock_released)
      })
      expect(await all.idle()).toMatchObject({ user_locks: { active: 0 }, pool: { used: 0 } })
    })
  }

  test('queue cleanup --older-than ends a run that takes too long; it runs again', async () => {
    const { all, pids } = await deafRun({ deaf: script(DEAF), held: script(HELD) })
    await until('it is old enough', async () => {
      const { items } = await all.place.ok(['queue', 'cleanup', '--older-than', '1s'])
      return items.length > 0
    })
    await until('all are gone', () => !pids.some(isAlive))
    await until('it runs again', () => all.lines('start').some(({ run }) => run === 'ada-1.2'))
    expect(all.wrong()).toEqual([])
  })

  test('told to end, it may clean up: what it says then is kept', async () => {
    const body = `trap 'echo cleaning; finish; exit 0' TERM; begin; forever`
    const all = dispatching({ agents: { tidy: script(body) }, runs: { grace_seconds: 10 } })
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.seen('start', 1)
    await all.place.ok(['--force', 'queue', 'cancel', 'ada-1'])
    const { items } = await all.daemon.ok('event.list', { task_id: 'ada-1' })
    const [ended, moved] = ['lease.cancelled', 'task.moved'].map((wanted) => {
      return Date.parse(items.find(({ type }: { type: string }) => type === wanted).at)
    })
    expect(ended! - moved!).toBeLessThan(2_000)
    expect(all.lines('end')).toHaveLength(1)
    expect((await all.place.cli(['runs', 'logs', 'ada-1'])).out).toContain('cleaning')
    expect(await all.task('ada-1')).toMatchObject({ status: 'cancelled' })
  })

  test('by another agent it is forbidden, and the run goes on', async () => {
    const all = dispatching({ agents: { held: script(HELD) } })
    await all.serve()
    await all.add('ada-1', 'ada')
    const [begun] = await all.seen('start', 1)
    const other = ['queue', 'cancel', 'ada-1', '--agent', 'stranger']
    await all.place.refused(other, 'forbidden', 4)
    expect(isAlive(begun!.pid)).toBe(true)
    all.write('go')
    await all.become('ada-1', 'done')
    await all.place.refused(['--force', 'queue', 'cancel', 'ada-1'], 'illegal_move', 5)
  })

  test('of a waiting task: it never starts', async () => {
    const all = dispatching({ agents: { held: script(HELD) }, slots: { max: 1 } })
    await all.serve()
    await all.add('ada-1', 'ada')
    await all.seen('start', 1)
    await all.add('ada-2', 'ada')
    await all.place.ok(['--force', 'queue', 'cancel', 'ada-2'])
    all.write('go')
    expect(await all.idle()).toMatchObject({ pending: { total: 0 } })
    expect(all.lines('start').map(({ task }) => task)).toEqual(['ada-1'])
  })
})
