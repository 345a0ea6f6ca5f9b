import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freeLock } from '../../src/core/queue/cancel.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import {
  BRIEF,
  type Dispatching,
  dispatching,
  HELD,
  killAll,
  script,
} from '../support/dispatching.ts'
import { callerOf } from '../support/helpers.ts'
import { isAlive, until } from '../support/processes.ts'

const AGENTS = { held: script(HELD), brief: script(BRIEF) }

/** An admin on the store itself: a daemon that is paused cannot be asked. */
async function forceRelease(all: Dispatching, name: string): Promise<void> {
  const store = openStore(placeOf({ LEASEHOLD_DIR: all.place.state }, all.place.folder))
  const ask = { name, reason: 'it does not answer' }
  await store.write((view) => freeLock(view, ask, callerOf('test', { admin: true })))
  await store.close()
}

describe('config.json changed while the daemon runs', () => {
  test('more slots: what waited for one starts, without a restart', async () => {
    const all = dispatching({ agents: AGENTS, slots: { max: 1 } })
    await all.serve()
    for (const user of ['ada', 'ben', 'cem']) await all.add(`${user}-1`, user)
    await all.seen('start', 1)
    expect((await all.daemon.ok('queue.status')).active).toMatchObject({ slots_available: 0 })
    all.configure({ agents: AGENTS, slots: { max: 3 } })
    await all.seen('start', 3)
    expect((await all.daemon.ok('queue.status')).active).toMatchObject({ slots_used: 3 })
    all.write('go')
    await all.idle()
  })

  test('fewer slots: nothing is stopped, and nothing starts until there is room', async () => {
    const all = dispatching({ agents: AGENTS, slots: { max: 2 } })
    await all.serve()
    for (const user of ['ada', 'ben', 'cem']) await all.add(`${user}-1`, user)
    await all.seen('start', 2)
    all.configure({ agents: AGENTS, slots: { max: 1 } })
    await until('the change is known', async () => {
      return (await all.daemon.ok('queue.status')).active.slots_max === 1
    })
    expect((await all.daemon.ok('queue.status')).active).toMatchObject({
      slots_used: 2,
      slots_available: 0,
    })
    expect(all.agents().length).toBeGreaterThanOrEqual(2)
    expect(all.lines('start')).toHaveLength(2)
    all.write('go')
    await all.seen('end', 3)
    await all.idle()
  })

  test('a project is added: its waiting tasks start; before, explain says why not', async () => {
    const all = dispatching({ agents: AGENTS })
    await all.serve()
    await all.add('ada-1', 'ada', { project: 'new', agent_command: 'brief' })
    const { reasons, sentence } = await all.place.ok(['task', 'explain', 'ada-1'])
    expect(reasons.map(({ code }: { code: string }) => code)).toContain('unserved')
    expect(sentence).toContain('no dispatcher serves project new')
    all.configure({ agents: AGENTS, projects: { web: {}, new: { agent: 'brief' } } })
    await all.become('ada-1', 'done')
    expect(all.lines('start')).toHaveLength(1)
  })

  test('a broken one is refused with the reason, and the old one stays in force', async () => {
    const all = dispatching({ agents: AGENTS, slots: { max: 1 } })
    await all.serve()
    const before = readFileSync(join(all.place.state, 'config.json'), 'utf8')
    all.save('{ "slots": { "maximum": 9 } }')
    await all.daemon.running.said(/kept the former configuration: .*slots\.maximum: no such key/)
    all.save('{ "slots": ')
    await all.daemon.running.said(/kept the former configuration: .*not JSON at line 1, column/)
    await all.add('ada-1', 'ada', { agent_command: 'brief' })
    await all.become('ada-1', 'done')
    expect((await all.daemon.ok('queue.status')).active.slots_max).toBe(1)
    all.save(before.replace('"max":1', '"max":2'))
    await until('the mended one counts', async () => {
      return (await all.daemon.ok('queue.status')).active.slots_max === 2
    })
  })

  test('a daemon or dispatcher is not started with a broken one, and says why', async () => {
    const all = dispatching()
    all.save('{ "slots": { "max": -1 }, "agnets": {} }')
    for (const args of [['serve', '--port', '0'], ['dispatch']]) {
      const error = await all.place.refused(args, 'invalid', 2)
      expect(error.message).toContain('config.json')
      expect(error.message).toContain('slots.max')
      expect(error.message).toContain('agnets: no such key; did you mean agents?')
    }
    expect(existsSync(join(all.place.state, 'server.json'))).toBe(false)
    all.configure({})
    await all.serve()
  })

  test('an agent that no configuration allows fails the task with the reason', async () => {
    const all = dispatching({ agents: AGENTS })
    await all.serve()
    for (const agent_command of ['shell', 'no-such']) {
      const id = `ada-${agent_command}`
      await all.add(id, 'ada', { agent_command })
      await all.become(id, 'failed')
      const [run] = (await all.daemon.ok('run.list', { task_id: id })).items
      expect(run.outcome).toMatch(`could not start: project web has no agent ${agent_command}`)
    }
    expect(await all.idle()).toMatchObject({ user_locks: { active: 0 } })
  })
})

describe('leasehold dispatch, without a daemon', () => {
  const add = (all: ReturnType<typeof dispatching>, id: string) =>
    all.place.ok(['queue', 'add', 'x', '--id', id, '--project', 'web', '--user', 'ada'])

  test('runs what waits and what comes, and a second one on this host is refused', async () => {
    const all = dispatching({ agents: { brief: AGENTS.brief } })
    await add(all, 'ada-1')
    const running = await all.dispatch()
    await all.seen('end', 1)
    await add(all, 'ada-2')
    await all.seen('end', 2)
    const error = await all.place.refused(['dispatch'], 'unavailable', 75)
    expect(error.message).toContain(`already running on this host (PID: ${running.pid})`)
    await until('both are done', async () => {
      return (await all.place.ok(['task', 'list', '--status', 'done'])).items.length === 2
    })
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0, err: '' })
    expect(running.out).toMatch(/completed run ada-2\.1: exit 0/)
    expect(await all.place.ok(['queue', 'status'])).toMatchObject({ dispatchers: [] })
  })

  test('is refused while a daemon dispatches, and starts when that has stopped', async () => {
    const all = dispatching({ agents: { brief: AGENTS.brief } })
    const daemon = await all.serve()
    const error = await all.place.refused(['dispatch'], 'unavailable', 75)
    expect(error.details).toMatchObject({ pid: daemon.running.pid })
    await daemon.stop()
    const running = await all.dispatch(['--slots', '1'])
    expect(await all.place.ok(['queue', 'status'])).toMatchObject({ active: { slots_max: 1 } })
    running.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 0 })
  })

  test('stopped, it leaves running what runs; the next one counts that, and goes on', async () => {
    const all = dispatching({ agents: { held: AGENTS.held }, slots: { max: 1 } })
    await add(all, 'ada-1')
    const first = await all.dispatch()
    const [begun] = await all.seen('start', 1)
    first.kill('SIGTERM')
    expect(await first.ended).toMatchObject({ code: 0 })
    expect(isAlive(begun!.pid)).toBe(true)
    await add(all, 'ada-2')
    await all.serve()
    expect((await all.daemon.ok('queue.status')).active).toMatchObject({ slots_used: 1 })
    all.write('go')
    await all.idle()
    expect(all.lines('start').map(({ run }) => run)).toEqual(['ada-1.1', 'ada-2.1'])
    expect(all.wrong()).toEqual([])
  })

  test('a daemon beside it stands by, and takes over when it is killed', async () => {
    const all = dispatching({ agents: { held: AGENTS.held }, slots: { max: 1 } })
    const running = await all.dispatch()
    await all.serve()
    await all.daemon.running.said(/standing by: .*dispatcher/)
    await all.add('ada-1', 'ada')
    await all.add('ada-2', 'ada')
    const [begun] = await all.seen('start', 1)
    const pids = { dispatcher: running.pid, daemon: all.daemon.running.pid }
    const [one] = (await all.daemon.ok('queue.status')).dispatchers
    expect(one.pid).toBe(pids.dispatcher)
    await killAll([running.pid])
    await until('the daemon dispatches', async () => {
      const [now] = (await all.daemon.ok('queue.status')).dispatchers
      return now?.pid === pids.daemon
    })
    expect(isAlive(begun!.pid)).toBe(true)
    all.write('go')
    await all.idle()
    expect(all.lines('end').map(({ run }) => run)).toEqual(['ada-1.1', 'ada-2.1'])
    await all.daemon.stop()
  })

  test('a daemon that stands by takes over from one that ended well, too', async () => {
    const all = dispatching({ agents: { brief: AGENTS.brief } })
    const running = await all.dispatch()
    await all.serve()
    await all.daemon.running.said(/standing by/)
    running.kill('SIGTERM')
    await running.ended
    await all.add('ada-1', 'ada')
    expect(await all.become('ada-1', 'done')).toMatchObject({ attempts: 1 })
  })

  test('one that lost its role while it was paused gets it back when it can', async () => {
    const all = dispatching({ agents: { brief: AGENTS.brief } })
    await all.serve()
    const { pid } = all.daemon.running
    const [one] = (await all.daemon.ok('queue.status')).dispatchers
    expect(one.pid).toBe(pid)
    process.kill(pid, 'SIGSTOP')
    await forceRelease(all, one.id)
    const second = await all.dispatch()
    process.kill(pid, 'SIGCONT')
    await all.daemon.running.said(/standing by: .*dispatcher/)
    await killAll([second.pid])
    await all.add('ada-1', 'ada')
    expect(await all.become('ada-1', 'done')).toMatchObject({ attempts: 1 })
    const [now] = (await all.daemon.ok('queue.status')).dispatchers
    expect(now.pid).toBe(pid)
  })
})
