import { once } from 'node:events'
import { mkdirSync, realpathSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import { isAlive, until } from '../support/processes.ts'
import { overStdio, serving } from './mcp_agent.ts'

describe('leasehold mcp', () => {
  test.each(['SIGKILL', 'the end of its pipe'])('%s frees its locks at once', async (how) => {
    const place = sandbox()
    const [agent, other] = [await overStdio(place), await overStdio(place)]
    const { id } = await agent.ok('create_task', { title: 'Long work' })
    const { lease } = await agent.ok('claim_task', { task_id: id, ttl_seconds: 3600 })
    const holder = expect.stringMatching(/^mcp:.+@.+:\d+$/) as string
    expect(lease).toMatchObject({ pid: agent.pid, holder })
    await other.refused('held', 'claim_task', { task_id: id })
    if (how === 'SIGKILL') process.kill(agent.pid!, 'SIGKILL')
    else await agent.client.close()
    await until('it ends', () => !isAlive(agent.pid!))
    const taken = await other.ok('claim_task', { task_id: id })
    expect(taken.lease.fence).toBeGreaterThan(lease.fence)
  })

  test('killed while a daemon runs, its lock is free at once as well', async () => {
    const { place, daemon } = await serving()
    const agent = await overStdio(place)
    await agent.ok('acquire_lock', { name: 'x', ttl_seconds: 3600 })
    process.kill(agent.pid!, 'SIGKILL')
    await until('it ends', () => !isAlive(agent.pid!))
    expect(await daemon.ok('lock.acquire', { names: ['x'] })).toMatchObject({ holder: 'admin' })
  })

  test('renews what it was granted for as long as its pipe is open', async () => {
    const place = sandbox()
    const agent = await overStdio(place)
    const lease = await agent.ok('acquire_lock', { name: 'x', ttl_seconds: 2 })
    const expiry = async () => (await place.ok(['lock', 'status', 'x'])).lock_expires_at as string
    // Another length of the lease: without renewals it would be over before.
    const end = new Date(Date.parse(lease.expires_at) + 2_000).toISOString()
    await until('it is renewed again and again', async () => (await expiry()) > end)
    expect(await place.ok(['lock', 'status', 'x'])).toMatchObject({ fence: lease.fence })
  })

  test('reserves paths of the checkout it works in, and keeps them while it lives', async () => {
    const place = sandbox()
    mkdirSync(place.path('repo/.git'), { recursive: true })
    mkdirSync(place.path('repo/src/core'), { recursive: true })
    const cwd = place.path('repo/src')
    const [agent, other] = [await overStdio(place, { cwd }), await overStdio(place, { cwd })]
    const { items } = await agent.ok('reserve_paths', { paths: ['core'], ttl_seconds: 2 })
    expect(items).toMatchObject([{ path: 'src/core/**' }])
    const end = new Date(Date.parse(items[0].expires_at) + 2_000).toISOString()
    const listed = async () => (await place.ok(['reserve', 'list'])).items[0]
    await until('it is renewed again and again', async () => (await listed()).expires_at > end)
    expect(await listed()).toMatchObject({ checkout: realpathSync(place.path('repo')) })
    const refused = await other.refused('held', 'reserve_paths', { paths: ['core/locks/lock.ts'] })
    expect(refused.details).toMatchObject({ path: 'src/core/locks/lock.ts', pid: agent.pid })
    expect(await agent.text('release_paths')).toBe('Released src/core/**')
    await other.ok('reserve_paths', { paths: ['core/locks/lock.ts'] })
    process.kill(other.pid!, 'SIGKILL')
    await until('it ends', () => !isAlive(other.pid!))
    expect(await agent.text('reserve_paths', { paths: ['**'] })).toMatch(
      /^Reserved src\/\*\* for .*, until /,
    )
  })

  test('does not hold a fence against an agent that gave its task back by the shell', async () => {
    const place = sandbox()
    const agent = await overStdio(place, { flags: ['--agent', 'ada'] })
    const { id } = await agent.ok('create_task', { title: 'Mixed doors' })
    const { lease } = await agent.ok('claim_task', { task_id: id })
    const fence = String(lease.fence)
    await place.ok(['task', 'status', id, 'review', '--fence', fence, '--agent', 'ada'])
    await agent.ok('update_task_status', { task_id: id, status: 'done' })
    expect(await place.ok(['task', 'show', id])).toMatchObject({ status: 'done' })
  })

  test('sends the fence that it remembers, and is told when that is stale', async () => {
    const place = sandbox()
    const agent = await overStdio(place, { flags: ['--agent', 'ada'] })
    const { id } = await agent.ok('create_task', { title: 'Contested' })
    const { lease } = await agent.ok('claim_task', { task_id: id })
    // The lease names the process, so a plain call without the fence is not the holder's.
    const plain = ['--agent', 'ada', 'task', 'status', id, 'done']
    await place.refused(plain, 'held', 5)
    await place.ok(['--force', 'lock', 'force-release', `task:${id}`])
    await place.ok(['--agent', 'bob', 'task', 'claim', id])
    const stale = await agent.refused('fence_stale', 'update_task_status', {
      task_id: id,
      status: 'done',
    })
    expect(stale.details).toMatchObject({ fence: lease.fence, holder: 'bob' })
  })

  test('speaks for the lease it runs under', async () => {
    const place = sandbox()
    const { id } = await place.ok(['task', 'add', 'Wrapped'])
    const { lease } = await place.ok(['--agent', 'ada', 'task', 'claim', id])
    const env = { LEASEHOLD_LOCK: `task:${id}`, LEASEHOLD_FENCE: String(lease.fence) }
    const agent = await overStdio(place, { env, flags: ['--agent', 'ada'] })
    const moved = await agent.ok('update_task_status', { task_id: id, status: 'review' })
    expect(moved).toMatchObject({ task: { status: 'review' }, lease: null })
    // It is over, and the environment still names it.
    await place.ok(['--agent', 'bob', 'lock', 'acquire', `task:${id}`])
    await agent.refused('fence_stale', 'update_task_status', { task_id: id, status: 'done' })
  })

  test('with a token it is the agent of that token, and nobody else', async () => {
    const { place, daemon } = await serving()
    const LEASEHOLD_TOKEN = await daemon.agentToken('ada')
    const agent = await overStdio(place, { env: { LEASEHOLD_TOKEN } })
    const lease = await agent.ok('acquire_lock', { name: 'x', ttl_seconds: 2 })
    expect(lease).toMatchObject({ holder: 'ada', pid: agent.pid })
    await agent.refused('forbidden', 'acquire_lock', { name: 'y', agent_id: 'bob' })
    const later = new Date(Date.parse(lease.expires_at) + 1_000).toISOString()
    await until('it is renewed', async () => {
      return (await daemon.ok('lock.status', { name: 'x' })).lock_expires_at > later
    })
    expect(await agent.ok('release_lock', { name: 'x' })).toMatchObject({ released: true })
  })

  test('goes on when the daemon goes away, and when it comes', async () => {
    const { place, daemon } = await serving()
    const agent = await overStdio(place)
    const { fence } = await agent.ok('acquire_lock', { name: 'x' })
    await daemon.kill()
    expect(await agent.ok('renew_lock', { name: 'x' })).toMatchObject({ fence })
  })

  test('offers the core tools only, where told so', async () => {
    const { client } = await overStdio(sandbox(), { flags: ['--tools', 'core'] })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name).toSorted()).toEqual([
      ...['acquire_lock', 'claim_task', 'create_task', 'explain'],
      ...['release_lock', 'reserve_paths', 'update_task_status'],
    ])
    await expect(client.callTool({ name: 'list_locks' })).rejects.toMatchObject({ code: -32602 })
    await sandbox().refused(['mcp', '--tools', 'few'], 'invalid', 2)
  })

  test('ends by itself with its pipe, even while it waits, and leaves the line', async () => {
    const place = sandbox()
    await place.ok(['--agent', 'ada', 'lock', 'acquire', 'x'])
    const running = place.start(['mcp'])
    const call = { name: 'acquire_lock', arguments: { name: 'x', wait_seconds: 600 } }
    const ask = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }
    running.child.stdin!.write(`${JSON.stringify(ask)}\n`)
    const waiters = async () => (await place.ok(['lock', 'status', 'x'])).waiters.length as number
    await until('it waits', async () => (await waiters()) === 1)
    running.child.stdin!.end()
    await once(running.child, 'exit')
    expect(await running.ended).toMatchObject({ code: 0, err: '' })
    expect(await waiters()).toBe(0)
  })

  test('writes nothing but the protocol on its standard output', async () => {
    const lines = ['not json', '{"jsonrpc":"2.0","id":1,"method":"ping"}', '{}'].join('\n')
    const { out, code } = await sandbox().process(['mcp'], { input: `${lines}\n` })
    for (const line of out.trim().split('\n').filter(Boolean)) {
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })
    }
    expect(code).toBe(0)
  })
})
