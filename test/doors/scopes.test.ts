import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../src/operations/registry.ts'
import { bindToken } from '../../src/core/token.ts'
import { getTask } from '../../src/core/tasks/task.ts'
import { sha256, uniqueId } from '../../src/machine/digest.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { Sandbox, until } from '../support/processes.ts'
import { overHttp } from './mcp_agent.ts'
import { conflicts, furnish, type Name, samplesOf } from './scope_scene.ts'
import { finish, type Json, type Reply, send, type Served, startDaemon } from './serving.ts'

const place = new Sandbox()
let daemon: Served
let store: Store
/** Bound to the user alice and her project. */
let alice: string
/** The token of a run for alice's task in progress. */
let run: string

beforeAll(async () => {
  daemon = await startDaemon(place)
  store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
  for (const user of ['alice', 'bob']) await furnish(daemon, store, user)
  alice = await daemon.agentToken('a', { users: ['alice'], projects: ['alice-project'] })
  run = `lh_${uniqueId()}`
  await store.write((view) => {
    const lease = view.get('lease', 'task:alice-busy')!
    bindToken(view, lease, getTask(view, 'alice-busy'), sha256(run))
  })
})

afterAll(async () => {
  await store.close()
  await finish(place)
  await place.close()
})

/** All rows that are bob's, as they are kept. */
async function bobs(): Promise<string> {
  const rows = await store.read((view) => [
    [...view.scan('tasks', '')].filter(({ user }) => user === 'bob'),
    [...view.scan('leases_by_expiry', '')].filter(({ holder }) => holder === 'bob-agent'),
    [...view.scan('memories', '')].filter(({ scope }) => scope === 'project:bob-project'),
    [...view.scan('conflicts', 'open')].filter(({ scope }) => scope === 'project:bob-project'),
    view.get('duplicate', 'bob-pair'),
    view.get('landing', 'bob-landing'),
    view.get('run', 'bob-busy.1'),
    view.get('share', 'bob'),
    view.get('token', sha256('bob')),
  ])
  return JSON.stringify(rows)
}

const shownOf = ({ status, json }: Reply) => ({ status, said: json?.error ?? json })

/** What differs by nature: names that were asked for, ids that are made, times. */
const plain = (reply: Reply, user: string) =>
  JSON.stringify(shownOf(reply))
    .replaceAll(conflicts.get(user)!, 'CONFLICT')
    .replaceAll(user, 'USER')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    // Two asks, one after the other: a second may have passed between them.
    .replaceAll(/"(expires_in_seconds)":\d+/g, '"$1":0')

describe.each([
  ['a token that is bound to alice', () => alice],
  ["the token of alice's run", () => run],
])('%s', (_, tokenOf) => {
  test('is told and changes nothing of bob, and cannot tell it from nothing', async () => {
    const before = await bobs()
    const [his, none] = [samplesOf('bob'), samplesOf('nobody')]
    for (const { name } of operations) {
      const token = tokenOf()
      const reply = await daemon.post(name, his[name as Name], { token })
      const other = await daemon.post(name, none[name as Name], { token })
      expect(plain(reply, 'bob'), name).toBe(plain(other, 'nobody'))
    }
    expect(await bobs()).toBe(before)
  })

  test('sees in lists what is alice’s, and none of bob’s', async () => {
    for (const name of [
      'task.list',
      'task.peek',
      'lock.list',
      'queue.list',
      'run.list',
      'land.list',
      'reserve.list',
      'agent.list',
      'event.list',
      'memory.list',
      'duplicate.list',
      'conflict.list',
      'lock.waiters',
      'stuck.get',
      'span.list',
    ]) {
      const input = name === 'event.list' ? { limit: 1000 } : {}
      const { items } = await daemon.ok(name, input, { token: tokenOf() })
      const text = JSON.stringify(items)
      expect(/bob/.test(text), `${name}: ${text}`).toBe(false)
      const shows = !['agent.list', 'lock.waiters', 'run.list'].includes(name)
      if (shows) expect(text, name).toMatch(/alice/)
    }
  })
})

describe('a token that is bound', () => {
  test('does all that is for agents with what is its own', async () => {
    const mine = samplesOf('alice')
    const may = [
      'task.get',
      'task.explain',
      'memory.get',
      'memory.search',
      'run.get',
      'run.output',
      'task.create',
      'queue.add',
      'task.update',
      'reserve.add',
      'memory.put',
      'conflict.list',
      'event.list',
      'queue.cancel',
      'queue.retry',
    ]
    for (const name of may) {
      const { status, json } = await daemon.post(name, mine[name as Name], { token: alice })
      expect({ name, status, error: json?.error?.message }).toEqual({ name, status: 200 })
    }
  })

  test('hears events of its own only, live and when it resumes', async () => {
    const heard: string[] = []
    const ended = new AbortController()
    const stream = await fetch(`${daemon.url}/v1/events?after=0-0`, {
      headers: { authorization: `Bearer ${alice}` },
      signal: ended.signal,
    })
    const reading = (async () => {
      for await (const chunk of stream.body!) heard.push(Buffer.from(chunk).toString())
    })().catch(() => undefined)
    await daemon.ok('queue.add', { prompt: 'bob live', project: 'bob-project', user: 'bob' })
    const own = { prompt: 'the last of alice', project: 'alice-project', user: 'alice' }
    const { task } = await daemon.ok('queue.add', own)
    await until('its own event came', () => heard.join('').includes(`"task":"${task.id}"`))
    ended.abort()
    await reading
    expect(heard.join('')).toMatch(/alice-busy/)
    expect(heard.join('')).not.toMatch(/bob/)
  })

  test('is told that a lock which is everybody’s is held, and not by whom', async () => {
    await daemon.ok('lock.acquire', { name: 'shared', agent: 'bob-agent', ttl_seconds: 600 })
    const asked = await daemon.post('lock.acquire', { name: 'shared' }, { token: alice })
    expect({ status: asked.status, code: asked.json.error.code }).toEqual({
      status: 409,
      code: 'held',
    })
    const waited = await daemon.post(
      'lock.acquire',
      { name: 'shared', wait_seconds: 1 },
      { token: alice },
    )
    expect(waited.json.error).toMatchObject({ code: 'held', details: { position: 1 } })
    const status = await daemon.ok('lock.status', { name: 'shared' }, { token: alice })
    expect(status).toMatchObject({ is_locked: true, lock_holder: 'another agent' })
    expect(asked.text + waited.text + JSON.stringify(status)).not.toMatch(/bob/)
    expect(JSON.stringify(await daemon.ok('lock.list', {}, { token: alice }))).not.toMatch(
      /"shared"/,
    )
  })

  test('through MCP sees the same: tools and resources', async () => {
    const agent = await overHttp(daemon.url, alice)
    const calls: [string, Json][] = [
      ['get_task', { task_id: 'bob-task' }],
      ['update_task_status', { task_id: 'bob-task', status: 'cancelled' }],
      ['explain', { task_id: 'bob-task' }],
      ['cancel_task', { task_id: 'bob-waiting' }],
      ['acquire_task_lock', { task_id: 'bob-task' }],
      ['memory_get', { key: 'bob-note', scope: 'project:bob-project' }],
    ]
    for (const [tool, given] of calls) {
      await agent.refused('not_found', tool, given)
    }
    expect(await agent.text('list_tasks')).not.toMatch(/bob/)
    expect(await agent.text('list_locks')).not.toMatch(/bob/)
    await expect(agent.client.readResource({ uri: 'leasehold://task/bob-task' })).rejects.toThrow(
      'bob-task',
    )
    const ready = await agent.client.readResource({ uri: 'leasehold://tasks/ready' })
    expect(JSON.stringify(ready)).not.toMatch(/bob/)
  })

  test('is refused what is about everybody: numbers would tell', async () => {
    for (const path of ['/metrics', '/v1/stats.get', '/v1/now.get', '/v1/queue.status']) {
      const { status } = await send(daemon.url, path, { token: alice })
      expect({ path, status }).toEqual({ path, status: 403 })
    }
  })

  test('cannot be an admin, nor make another', async () => {
    const ask = { secret_hash: sha256('x'), role: 'admin', users: ['alice'] }
    expect((await daemon.post('token.create', ask)).json.error.code).toBe('invalid')
  })
})

describe('a run', () => {
  test('changes its own task and those that it made, not another of its user', async () => {
    const { status, json } = await daemon.post(
      'task.update',
      { id: 'alice-waiting', version: 1, title: 'x' },
      { token: run },
    )
    expect({ status, code: json.error.code }).toEqual({ status: 403, code: 'forbidden' })
    const made = await daemon.ok(
      'task.create',
      { title: 'mine', user: 'alice', project: 'alice-project' },
      { token: run },
    )
    await daemon.ok('task.update', { id: made.id, version: 1, title: 'mine still' }, { token: run })
    const noted = { key: 'k', content: 'v', scope: 'task:alice-busy' }
    await daemon.ok('memory.put', noted, { token: run })
    const all = await daemon.post('memory.put', { key: 'k', content: 'v' }, { token: run })
    expect(all.json.error.code).toBe('forbidden')
  })
})

describe('an enqueued task', () => {
  test('is edited by its creator, its user or an admin only', async () => {
    const edit = async (token: string) => {
      const { version } = await daemon.ok('task.get', { id: 'bob-waiting' })
      const ask = { id: 'bob-waiting', version, body: 'Do something else' }
      return (await daemon.post('task.update', ask, { token })).json
    }
    const eve = await daemon.agentToken('eve')
    expect((await edit(eve)).error.code).toBe('forbidden')
    const bob = await daemon.agentToken('b', { users: ['bob'] })
    expect((await edit(bob)).error).toBeUndefined()
    const creator = await daemon.agentToken('bob-owner')
    expect((await edit(creator)).error).toBeUndefined()
  })
})

describe('names of our own programs', () => {
  test('are refused for every write of every agent', async () => {
    const eve = await daemon.agentToken('eve')
    const name = 'leasehold:dispatcher:elsewhere'
    const { items } = await daemon.ok('lock.list')
    const held = (items as { name: string; fence: number }[]).find(
      ({ name: n }) => n === 'leasehold:daemon',
    )!
    const asks: [string, object][] = [
      ['lock.acquire', { name }],
      ['lock.acquire', { names: ['a', name], wait_seconds: 1 }],
      ['lock.release', { name: held.name, fence: held.fence }],
      ['lock.renew', { name: held.name, fence: held.fence }],
      ['lock.hand_off', { name: held.name, fence: held.fence, to: 'eve' }],
    ]
    for (const token of [eve, daemon.secret]) {
      for (const [operation, input] of asks) {
        const { json } = await daemon.post(operation, input, { token })
        expect({ operation, code: json.error.code }).toEqual({ operation, code: 'forbidden' })
      }
    }
  })
})
