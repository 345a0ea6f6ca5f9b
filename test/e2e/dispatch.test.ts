import { describe, expect, test } from 'vitest'
import { BRIEF, dispatching, HELD, most, script, userOf } from '../support/dispatching.ts'
import { ROUNDS, TEST_CLI, until } from '../support/processes.ts'

const USERS = ['ada', 'ben', 'cem']
/** How many tasks each of them has; every run takes two processes. */
const EACH = ROUNDS > 1 ? 10 : 3
const TOTAL = EACH * USERS.length
const UNSERIALIZED = { per_user_serialization: { enabled: false } }

/** Enqueues the tasks of each user, all of one before the next, then waits for them all. */
async function through(config: object) {
  const all = dispatching({ agents: { brief: script(BRIEF) }, ...config })
  await all.serve()
  await all.daemon.ok('queue.pause')
  for (const user of USERS) {
    for (let i = 0; i < EACH; i += 1) await all.add(`${user}-${i}`, user)
  }
  await all.daemon.ok('queue.resume')
  const lines = await all.seen('end', TOTAL)
  const status = await all.idle()
  expect(lines).toHaveLength(TOTAL)
  expect(all.wrong()).toEqual([])
  return { all, lines: all.lines(), status }
}

describe(`three users with ${EACH} tasks each`, () => {
  test('never two of one user, never more than the slots, and all are done', async () => {
    const { lines, status, all } = await through({ slots: { max: 4 } })
    const at_once = most(lines, userOf)
    expect(at_once.each).toBe(1)
    expect(at_once.all).toBeLessThanOrEqual(3)
    expect(status).toMatchObject({ active: { slots_used: 0, by_user: {} }, pool: { used: 0 } })
    const { items } = await all.daemon.ok('task.list', { limit: 100, status: 'done' })
    expect(items).toHaveLength(TOTAL)
  })

  test('with fewer slots than users these take turns', async () => {
    const { lines } = await through({ slots: { max: 2 } })
    expect(most(lines, userOf).all).toBeLessThanOrEqual(2)
    const starts = lines.filter(({ what }) => what === 'start').map(userOf)
    for (let end = 1; end <= TOTAL; end += 1) {
      const counts = USERS.map(
        (user) => starts.slice(0, end).filter((each) => each === user).length,
      )
      expect(Math.max(...counts) - Math.min(...counts), starts.join(' ')).toBeLessThanOrEqual(2)
    }
  })

  test('without serialization: never more than the slots, and all are done', async () => {
    const { lines } = await through({ slots: { max: 4 }, ...UNSERIALIZED })
    expect(most(lines, userOf).all).toBeLessThanOrEqual(4)
  })
})

/** Of two users with three tasks each, waits until so many run, and says whose they are. */
async function atOnce(count: number, config: object, env: Record<string, string> = {}) {
  const all = dispatching({ agents: { held: script(HELD) }, ...config })
  await all.serve(env, TEST_CLI)
  for (const user of ['ada', 'ben']) {
    for (let i = 0; i < 3; i += 1) await all.add(`${user}-${i}`, user)
  }
  const { active } = await until('all that may run does', async () => {
    const status = await all.daemon.ok('queue.status')
    const started = all.lines('start').length
    return started >= count && status.active.slots_used === started && status
  })
  const running = all.lines('start').map(userOf).toSorted()
  all.write('go')
  await all.idle()
  expect(all.lines('end')).toHaveLength(6)
  // Nor were there more a moment later.
  expect(most(all.lines(), userOf).all).toBe(count)
  return { running, by_user: active.by_user }
}

describe('one user at a time', () => {
  test('a user has one running, however many slots are free', async () => {
    const { running, by_user } = await atOnce(2, { slots: { max: 4 } })
    expect({ running, by_user }).toEqual({ running: ['ada', 'ben'], by_user: { ada: 1, ben: 1 } })
  })

  test('without serialization users fill the slots, and no more than these', async () => {
    const { running } = await atOnce(4, { slots: { max: 4 }, ...UNSERIALIZED })
    expect(running).toHaveLength(4)
  })

  test('a user’s own limit counts before the general one', async () => {
    const users = { ada: { limit: 2 } }
    const { running } = await atOnce(3, { slots: { max: 6 }, users })
    expect(running).toEqual(['ada', 'ada', 'ben'])
  })

  test('the pool’s limit bounds all of them', async () => {
    const { running } = await atOnce(3, { ...UNSERIALIZED, pool: { limit: 3 } })
    expect(running).toHaveLength(3)
  })

  test('the test would see two of one user at once (planted S8)', async () => {
    const { running } = await atOnce(4, { slots: { max: 4 } }, { LEASEHOLD_PLANT: 'S8' })
    expect(running).toHaveLength(4)
  })
})

describe('what may run at once', () => {
  test('a project’s limit holds, and others are served beside it', async () => {
    const projects = { web: { agent: 'brief', limit: 1 }, api: { agent: 'brief' } }
    const all = dispatching({ slots: { max: 4 }, projects })
    await all.serve()
    for (const user of USERS) {
      for (const project of ['web', 'api']) {
        for (let i = 0; i < 2; i += 1) await all.add(`${user}-${project}-${i}`, user, { project })
      }
    }
    await all.seen('end', 12)
    const web = all.lines().filter(({ task }) => task.includes('-web-'))
    expect(most(web, () => 'web')).toEqual({ all: 1, each: 1 })
    expect(most(all.lines(), userOf).all).toBeGreaterThan(1)
    await all.idle()
  })

  test('members of a group follow each other', async () => {
    const all = dispatching({ slots: { max: 1 } })
    await all.serve()
    await all.daemon.ok('queue.pause')
    for (const [id, group] of [
      ['ada-1', 'g'],
      ['ada-2', null],
      ['ada-3', 'g'],
      ['ada-4', null],
      ['ada-5', 'g'],
    ] as const) {
      await all.add(id, 'ada', { group })
    }
    await all.daemon.ok('queue.resume')
    await all.seen('end', 5)
    const order = all.lines('start').map(({ task }) => task)
    expect(order).toEqual(['ada-1', 'ada-3', 'ada-5', 'ada-2', 'ada-4'])
  })

  test('high priority goes first across users, in at most three of four starts', async () => {
    const all = dispatching({ slots: { max: 1 } })
    await all.serve()
    await all.daemon.ok('queue.pause')
    for (let i = 0; i < 3; i += 1) await all.add(`ben-${i}`, 'ben')
    for (let i = 0; i < 6; i += 1) await all.add(`ada-${i}`, 'ada', { priority: 9 })
    await all.daemon.ok('queue.resume')
    await all.seen('end', 9)
    const order = all.lines('start').map(userOf)
    expect(order.join(' ')).toBe('ada ada ada ben ada ada ada ben ben')
  })
})

test('a lock on a user that was taken by hand makes its tasks wait until it is free', async () => {
  const all = dispatching()
  await all.serve()
  await all.place.ok(['lock', 'acquire', 'user:ada', '--agent', 'me'])
  await all.add('ada-1', 'ada')
  await all.add('ben-1', 'ben')
  await all.become('ben-1', 'done')
  expect(await all.task('ada-1')).toMatchObject({ status: 'todo' })
  const { reasons } = await all.place.ok(['task', 'explain', 'ada-1'])
  expect(reasons[0]).toMatchObject({ code: 'user_busy', details: { busy_with: 'user:ada' } })
  await all.place.ok(['lock', 'release', 'user:ada', '--agent', 'me'])
  await all.become('ada-1', 'done')
})

test('a task starts when what it depends on is done, and not when that has failed', async () => {
  const agents = { brief: script(BRIEF), failing: script('begin; exit 3') }
  const all = dispatching({ agents })
  await all.serve()
  await all.add('ada-1', 'ada', { agent_command: 'failing' })
  await all.add('ben-1', 'ben', { depends_on: ['ada-1'] })
  await all.add('cem-1', 'cem')
  await all.add('cem-2', 'cem', { depends_on: ['cem-1'] })
  await all.become('cem-2', 'done')
  await all.become('ada-1', 'failed')
  expect(await all.task('ben-1')).toMatchObject({ status: 'todo', attempts: 0 })
  const { sentence } = await all.place.ok(['task', 'explain', 'ben-1'])
  expect(sentence).toContain('waits for task ada-1, which is failed')
})

test('queue status while tasks run says what product.md says it does', async () => {
  const all = dispatching({ agents: { held: script(HELD) }, slots: { max: 2 } })
  await all.serve()
  await all.add('ada-1', 'ada')
  await all.add('ada-2', 'ada', { priority: 8 })
  await all.add('ben-1', 'ben')
  await all.add('cem-1', 'cem')
  const [first, second] = await all.seen('start', 2)
  const status = await all.place.ok(['queue', 'status'])
  expect(status.pending).toEqual({ high: 1, normal: 1, total: 2, by_user: { ada: 1, cem: 1 } })
  expect(status.active).toEqual({
    slots_used: 2,
    slots_max: 2,
    slots_available: 0,
    by_project: { web: 2 },
    by_user: { ada: 1, ben: 1 },
  })
  expect(status.user_locks.active).toBe(2)
  for (const { task, fence, pid } of [first!, second!]) {
    const user = task.split('-')[0]!
    const lock = status.user_locks.details.find((each: { user: string }) => each.user === user)
    const more = { acquired_at: expect.any(String), expires_at: expect.any(String) }
    const lock_id = `user:${user}#${fence}`
    expect(lock).toEqual({ user, lock_id, task_id: task, acquired_by_pid: pid, ...more })
    const shown = await all.place.ok(['lock', 'status', `user:${user}`])
    expect(shown).toMatchObject({ is_locked: true, fence })
  }
  const { sentence, reasons } = await all.place.ok(['task', 'explain', 'ada-2'])
  expect(sentence).toContain('user ada is busy with task ada-1')
  expect(reasons[0]).toMatchObject({ code: 'user_busy', details: { busy_with: 'task:ada-1' } })
  expect((await all.place.ok(['task', 'explain', 'cem-1'])).sentence).toContain('free slot')
  all.write('go')
  expect(await all.idle()).toMatchObject({ user_locks: { active: 0, details: [] } })
})
