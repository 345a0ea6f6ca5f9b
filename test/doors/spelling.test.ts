import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Sandbox } from '../support/processes.ts'
import { type McpAgent, overHttp } from './mcp_agent.ts'
import { finish, type Json, type Served, send, startDaemon } from './serving.ts'

const place = new Sandbox()
let daemon: Served
let token: string

beforeAll(async () => {
  daemon = await startDaemon(place)
  token = await daemon.agentToken('ada')
})

afterAll(async () => {
  await finish(place)
  await place.close()
})

/** The operation behind each tool, for the same words over HTTP. */
const OPERATION: Record<string, string> = {
  create_task: 'task.create',
  list_tasks: 'task.list',
  get_task: 'task.get',
  claim_task: 'task.claim',
  update_task: 'task.update',
  update_task_status: 'task.status',
  acquire_lock: 'lock.acquire',
  renew_lock: 'lock.renew',
  release_lock: 'lock.release',
  hand_off_lock: 'lock.hand_off',
  list_locks: 'lock.list',
  reserve_paths: 'reserve.add',
  release_paths: 'reserve.release',
  enqueue_task: 'queue.add',
  cancel_task: 'queue.cancel',
  explain: 'task.explain',
  memory_put: 'memory.put',
  memory_search: 'memory.search',
  acquire_task_lock: 'lock.acquire',
  release_task_lock: 'lock.release',
  get_task_lock_status: 'lock.status',
}

interface Asked {
  ok(tool: string, given: Json): Promise<Json>
  refused(tool: string, given: Json): Promise<string>
}

/** Both ways for the same words: tools of the official client, and plain HTTP. */
const WAYS: [string, () => Promise<Asked>][] = [
  [
    'over MCP',
    async () => {
      const agent: McpAgent = await overHttp(daemon.url, token, { era: '2026' })
      return {
        ok: (tool, given) => agent.ok(tool, given),
        refused: async (tool, given) => {
          const { isError, structuredContent } = await agent.call(tool, given)
          expect(isError, JSON.stringify(structuredContent)).toBe(true)
          return structuredContent.error.code as string
        },
      }
    },
  ],
  [
    'over HTTP',
    async () => {
      const post = (tool: string, given: Json) => {
        const body = JSON.stringify(given)
        const headers = { 'content-type': 'application/json' }
        return send(daemon.url, `/v1/${OPERATION[tool]}`, { method: 'POST', token, headers, body })
      }
      return {
        ok: async (tool, given) => {
          const { json } = await post(tool, given)
          expect(json.error, `${tool} ${JSON.stringify(given)}`).toBeUndefined()
          return json
        },
        refused: async (tool, given) => {
          const { json } = await post(tool, given)
          expect(json.error, `${tool} ${JSON.stringify(given)}`).toBeDefined()
          return json.error.code as string
        },
      }
    },
  ],
]

/** What agents send → what the task that comes of it must say. */
const CREATED: [Json, Json][] = [
  [
    { name: 'x', ra_mode: 'ra-full', ra_score: '9' },
    { title: 'x', metadata: { ra_mode: 'ra-full', ra_score: 9 } },
  ],
  [{ title: 42 }, { title: '42' }],
  [{ title: 'x', priority: '7' }, { priority: 7 }],
  [{ title: 'x', priority: 'high' }, { priority: 8 }],
  [{ title: 'x', priority: 'Low' }, { priority: 2 }],
  [{ title: 'x', priority: null }, { priority: 5 }],
  [{ title: 'x', priority: '' }, { priority: 5 }],
  [{ title: 'x', labels: 'bug' }, { labels: ['bug'] }],
  [{ title: 'x', labels: 'bug, ui' }, { labels: ['bug', 'ui'] }],
  [{ title: 'x', labels: '["bug","ui"]' }, { labels: ['bug', 'ui'] }],
  [{ title: 'x', labels: [1, 'two'] }, { labels: ['1', 'two'] }],
  [{ title: 'x', labels: null }, { labels: [] }],
  [{ title: 'x', labels: '' }, { labels: [] }],
  [{ title: 'x', tags: ['bug'] }, { labels: ['bug'] }],
  [{ title: 'x', metadata: '{"a": 1}' }, { metadata: { a: 1 } }],
  [{ title: 'x', metadata: null }, { metadata: {} }],
  [{ title: 'x', project: '' }, { project: null }],
  [{ title: 'x', project: null }, { project: null }],
  [
    { title: 'x', assigned_to: '', body: null },
    { assigned_to: null, body: '' },
  ],
  [{ title: 'x', assignee: 'ada' }, { assigned_to: 'ada' }],
  [{ title: 'x', assignedTo: 'ada' }, { assigned_to: 'ada' }],
  [{ title: 'x', description: 'why' }, { body: 'why' }],
  [{ name: 'x', agent_id: 'ada/sub' }, { title: 'x' }],
  [{ name: 'x', agentId: null, agent: null }, { title: 'x' }],
]

/** A status as agents say it. */
const STATUS: [string, string][] = [
  ['In Progress', 'in_progress'],
  ['IN_PROGRESS', 'in_progress'],
  ['in-progress', 'in_progress'],
  ['inProgress', 'in_progress'],
  ['doing', 'in_progress'],
  ['WIP', 'in_progress'],
  ['started', 'in_progress'],
  ['running', 'in_progress'],
  ['in review', 'review'],
  ['needs_review', 'review'],
  ['Completed', 'done'],
  ['finished', 'done'],
  ['resolved', 'done'],
  ['To Do', 'todo'],
  ['pending', 'todo'],
  ['failure', 'failed'],
  ['canceled', 'cancelled'],
]

/** What can only be a mistake. */
const WRONG: [string, Json][] = [
  ['create_task', { title: 'x', priority: 'soon' }],
  ['create_task', { title: 'x', priority: '7.5' }],
  ['create_task', { title: 'x', priority: '12' }],
  ['create_task', { title: 'x', priority: true }],
  ['create_task', { title: 'x', metadata: '[1]' }],
  ['create_task', { title: 'x', metadata: 'note' }],
  ['create_task', { title: 'x', labels: { a: 1 } }],
  ['create_task', { title: 'x', ra_score: 'nine' }],
  ['create_task', { title: ['x'] }],
  ['create_task', { title: null }],
  ['create_task', { title: '' }],
  ['create_task', { title: 'x', name: 'y' }],
  ['create_task', { title: 'x', colour: 'red' }],
  ['acquire_lock', { name: 'n', timeout: 'long' }],
  ['acquire_lock', { name: 'n', timeout: '5 years' }],
  ['acquire_lock', { name: 'n', timeout: 60, ttl_seconds: 70 }],
  ['acquire_lock', { name: 'n', task_id: '1' }],
  ['acquire_lock', { name: '' }],
  ['acquire_lock', {}],
  ['release_lock', { name: 'n', fence: 'latest' }],
  ['claim_task', { queued: 'maybe' }],
  ['update_task_status', { task_id: '1', status: 'blocked' }],
  ['list_tasks', { limit: '0x10' }],
  ['list_tasks', { ready: 1 }],
]

describe.each(WAYS)('%s', (_way, open) => {
  let ask: Asked

  const reopened = async () => (ask = await open())

  test('a task is created from the words that agents use', async () => {
    await reopened()
    for (const [given, made] of CREATED) {
      expect(await ask.ok('create_task', given), JSON.stringify(given)).toHaveProperty('id')
      const { items } = await listed()
      expect(items.at(-1), JSON.stringify(given)).toMatchObject(made)
    }
    const { id: a } = await ask.ok('create_task', { title: 'a' })
    const { id: b } = await ask.ok('create_task', { title: 'b' })
    for (const depends_on of [Number(a), a, [Number(a)], `[${a}]`]) {
      const { id } = await ask.ok('create_task', { title: 'c', depends_on })
      expect(await whole(id)).toMatchObject({ depends_on: [a] })
    }
    for (const depends_on of [`${a}, ${b}`, `${a},${b}`, `["${a}", ${b}]`, [Number(a), b]]) {
      const { id } = await ask.ok('create_task', { title: 'c', depends_on })
      expect(await whole(id)).toMatchObject({ depends_on: [a, b] })
    }
    const { id } = await ask.ok('create_task', { title: 'c', dependencies: [a] })
    expect(await whole(id)).toMatchObject({ depends_on: [a] })
  })

  test('a status is understood however it is said', async () => {
    await reopened()
    for (const [said, status] of STATUS) {
      const { id } = await ask.ok('create_task', { title: said })
      await ask.ok('claim_task', { task_id: Number(id), timeout: '60' })
      await ask.ok('update_task_status', { task_id: Number(id), status: said })
      expect((await whole(id)).status, said).toBe(status)
    }
    for (const status of ['all', null, '']) await ask.ok('list_tasks', { status, limit: '3' })
  })

  test("a task's lock goes by the task's id with every tool of a lock", async () => {
    await reopened()
    const { id } = await ask.ok('create_task', { title: 'locked' })
    const task_id = Number(id)
    const lease = await ask.ok('acquire_lock', { task_id, timeout: '5m' })
    expect(lease).toMatchObject({ name: `task:${id}`, ttl_seconds: 300 })
    const fence = String(lease.fence)
    expect(await ask.ok('renew_lock', { task_id, fence, timeout: 90 })).toMatchObject({
      name: `task:${id}`,
      ttl_seconds: 90,
    })
    const status = await ask.ok('get_task_lock_status', { task_id })
    expect(status).toMatchObject({ is_locked: true, lock_holder: 'ada' })
    const passed = await ask.ok('hand_off_lock', { task_id: id, fence, to: 'ada/next' })
    expect(passed).toMatchObject({ holder: 'ada/next' })
    await ask.ok('release_lock', { task_id, fence: passed.fence, agent_id: 'ada/next' })
    await ask.ok('acquire_task_lock', { task_id, timeout: 60 })
    await ask.ok('release_task_lock', { task_id })
    for (const tool of ['acquire_task_lock', 'release_task_lock', 'get_task_lock_status']) {
      expect(await ask.refused(tool, { task_id: 'none-such' }), tool).toBe('not_found')
    }
    for (const tool of ['acquire_lock', 'renew_lock', 'release_lock']) {
      expect(await ask.refused(tool, { task_id: 'none-such' }), tool).toBe('not_found')
    }
    expect(await ask.refused('hand_off_lock', { task_id: 'none-such', to: 'x' })).toBe('not_found')
    await ask.ok('acquire_lock', { name: 'task:none-such' })
    await ask.ok('release_lock', { name: 'task:none-such' })
  })

  test('locks and paths may be one, a list, or a list as text', async () => {
    await reopened()
    for (const [given, names] of [
      [{ names: 'a' }, ['a']],
      [{ names: 'a, b' }, ['a', 'b']],
      [{ names: '["a", "b"]' }, ['a', 'b']],
      [{ lock_name: 'a', wait: '0', takeover: 'False' }, ['a']],
      [{ name: 7, process: null, request_id: '' }, ['7']],
    ] as [Json, string[]][]) {
      const got = await ask.ok('acquire_lock', given)
      const leases = (got.items ?? [got]) as Json[]
      expect(leases.map(({ name }) => name)).toEqual(names)
      for (const { name, fence } of leases)
        await ask.ok('release_lock', { name, fence: `${fence}` })
    }
    for (const [given, paths] of [
      [{ paths: 'src/**' }, ['src/**']],
      [{ paths: 'src/a.ts, src/b.ts' }, ['src/a.ts', 'src/b.ts']],
      [{ paths: 'src/{a,b}.ts' }, ['src/{a,b}.ts']],
      [{ paths: '["x/a", "x/b"]' }, ['x/a', 'x/b']],
      [{ path: 'one.md', shared: 'true', ttl: '10 min' }, ['one.md']],
      [{ files: ['one.md'], reason: '' }, ['one.md']],
    ] as [Json, string[]][]) {
      const { items } = await ask.ok('reserve_paths', { project: 'p', ...given })
      expect(items.map(({ path }: Json) => path).toSorted()).toEqual(paths.toSorted())
      await ask.ok('release_paths', { project: 'p' })
    }
  })

  test('numbers, yes and no and nothing at all are understood in every other tool', async () => {
    await reopened()
    const { id } = await ask.ok('create_task', { title: 'edited' })
    const edited = { task_id: Number(id), version: '1', title: 'new', project: null, labels: 'x' }
    await ask.ok('update_task', edited)
    expect(await whole(id)).toMatchObject({ title: 'new', labels: ['x'], version: 2 })
    await ask.ok('list_tasks', { ready: 'true', limit: '5', project: '', label: null, after: '' })
    await ask.ok('list_locks', { limit: '5', after: null })
    const note = { key: 'port', content: 'It is 5432.', confidence: '0.8', tags: 'db, port' }
    await ask.ok('memory_put', { ...note, scope: `task:${id}`, based_on: null, ttl_seconds: '' })
    await ask.ok('memory_search', { query: 'port', limit: '2', tags: 'db', scope: null })
    const queued = await ask.ok('enqueue_task', {
      ...{ prompt: 'do it', project: 'web', user: 'u', priority: '9', retries: '1' },
      ...{ time_limit_seconds: '2h', depends_on: Number(id) },
    })
    expect(await whole(queued.task.id)).toMatchObject({ priority: 9, depends_on: [id] })
    await ask.ok('cancel_task', { task_id: queued.task.id, fence: null })
    await ask.ok('explain', { task_id: Number(id) })
  })

  test('what makes no sense is refused as before', async () => {
    await reopened()
    for (const [tool, given] of WRONG) {
      expect(await ask.refused(tool, given), `${tool} ${JSON.stringify(given)}`).toBe('invalid')
    }
  })
})

async function listed(): Promise<Json> {
  return daemon.ok('task.list', { limit: 1000 })
}

async function whole(id: string): Promise<Json> {
  return daemon.ok('task.get', { id })
}
