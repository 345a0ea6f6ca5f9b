import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Client, Refusal } from '../../src/index.ts'
import { agentClient, clientOf, daemonOn, killAndRestart } from '../support/daemons.ts'
import { expectRefusal } from '../support/helpers.ts'
import { type Sandbox, sandbox } from '../support/processes.ts'

/** Work that ends only when it is told to: resolves with the reason. */
async function untilAborted(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await once(signal, 'abort')
  return signal.reason
}

const WAYS: Record<string, (place: Sandbox) => Promise<[Client, Client]>> = {
  embedded: async (place) => {
    const client = await clientOf({ embedded: true, dir: place.state, agent: 'ada' })
    return [client, client]
  },
  'a server found by itself': async (place) => {
    await daemonOn(place)
    const client = await clientOf({ dir: place.state, agent: 'ada' })
    return [client, client]
  },
  'a server by token': async (place) => {
    const daemon = await daemonOn(place)
    return [await agentClient(place, daemon, 'ada'), await clientOf({ dir: place.state })]
  },
}

describe.for(Object.keys(WAYS))('withLock on %s', (way) => {
  test('holds, renews past the TTL, gives back, and returns what the work returns', async () => {
    const [client, admin] = await WAYS[way]!(sandbox())
    // Longer than a busy machine may take for a renewal: what is not acknowledged in time is lost.
    const result = await client.withLock('x', { ttl_seconds: 6 }, async (signal, lease) => {
      const first = (await admin.lock.status({ name: 'x' })).lock_expires_at!
      await expect
        .poll(async () => (await admin.lock.status({ name: 'x' })).lock_expires_at! > first)
        .toBe(true)
      expect(signal.aborted).toBe(false)
      return lease.fence
    })
    expect(await admin.lock.status({ name: 'x' })).toMatchObject({
      is_locked: false,
      fence: result,
    })
  })

  test('aborts the work when the lease is force-released, and throws the refusal', async () => {
    const [client, admin] = await WAYS[way]!(sandbox())
    let reason: unknown
    const held = client.withLock('x', { ttl_seconds: 2 }, async (signal) => {
      await admin.as('boss').lock.force_release({ name: 'x' })
      reason = await untilAborted(signal)
      return 'never mind'
    })
    await expectRefusal(held, 'lease_expired')
    expect(reason).toBeInstanceOf(Refusal)
  })

  test('throws what the work throws, and gives the lock back', async () => {
    const [client] = await WAYS[way]!(sandbox())
    const broken = client.withLock('x', () => Promise.reject(new Error('broken')))
    await expect(broken).rejects.toThrow('broken')
    expect(await client.lock.status({ name: 'x' })).toMatchObject({ is_locked: false })
  })

  test('lets one program in at a time, also with itself', async () => {
    const [client, other] = await WAYS[way]!(sandbox())
    const order: string[] = []
    const turn = (who: Client, name: string) =>
      who.withLock('x', async () => {
        order.push(`${name} in`)
        await who.lock.status({ name: 'x' })
        order.push(`${name} out`)
      })
    await Promise.all([turn(client, 'a'), turn(client, 'b'), turn(other, 'c'), turn(client, 'd')])
    for (let i = 0; i < order.length; i += 2) {
      expect(order[i + 1]).toBe(order[i]!.replace(' in', ' out'))
    }
    expect(order).toHaveLength(8)
  })

  test('gives up when its caller does, and leaves nothing held', async () => {
    const [client, other] = await WAYS[way]!(sandbox())
    const holder = other.as('holder')
    const { fence } = (await holder.lock.acquire({ names: ['x'], process: null })) as {
      fence: number
    }
    const giving = new AbortController()
    const waiting = client.withLock('x', { signal: giving.signal }, () => 'never')
    await expect.poll(async () => (await other.lock.status({ name: 'x' })).waiters.length).toBe(1)
    giving.abort(new Error('no longer'))
    await expect(waiting).rejects.toThrow('no longer')
    await holder.lock.release({ name: 'x', fence })
    expect(await client.lock.status({ name: 'x' })).toMatchObject({ is_locked: false, waiters: [] })
  })
})

test('a server that is killed and stays away past the TTL aborts the work in time', async () => {
  const place = sandbox()
  const daemon = await daemonOn(place)
  const client = await agentClient(place, daemon, 'ada')
  const ttl_seconds = 3
  let took_ms = 0
  const held = client.withLock('x', { ttl_seconds }, async (signal) => {
    const start_ms = performance.now()
    daemon.running.kill('SIGKILL')
    await untilAborted(signal)
    took_ms = performance.now() - start_ms
  })
  const no = await expectRefusal(held, 'lease_expired')
  expect(no.message).toContain('acknowledged')
  // Two thirds of the TTL, which leaves a third to stop in.
  expect(took_ms).toBeLessThan(ttl_seconds * 1000)
  expect(took_ms).toBeGreaterThan(ttl_seconds * 500)
})

test('a server that is killed and comes back in time costs the work nothing', async () => {
  const place = sandbox()
  const daemon = await daemonOn(place)
  const client = await agentClient(place, daemon, 'ada')
  const fence = await client.withLock('x', { ttl_seconds: 6 }, async (signal, lease) => {
    await killAndRestart(place, daemon)
    const first = (await client.lock.status({ name: 'x' })).lock_expires_at!
    await expect
      .poll(async () => (await client.lock.status({ name: 'x' })).lock_expires_at! > first)
      .toBe(true)
    expect(signal.aborted).toBe(false)
    return lease.fence
  })
  expect(await client.lock.status({ name: 'x' })).toMatchObject({ is_locked: false, fence })
})

test('a server that breaks over a renewal is asked again', async () => {
  const place = sandbox()
  const daemon = await daemonOn(place)
  let broken = 0
  const said = JSON.stringify({ error: { code: 'internal', message: 'Broken', details: {} } })
  const relay = createServer((request, response) => {
    if (request.url === '/v1/lock.renew' && broken < 2) {
      broken += 1
      response.writeHead(500, { 'content-type': 'application/json' }).end(said)
      return
    }
    const { method, headers } = request
    const host = `127.0.0.1:${daemon.port}`
    const on = httpRequest(daemon.url + request.url, { method, headers: { ...headers, host } })
    on.on('response', (answer) => {
      answer.pipe(response.writeHead(answer.statusCode!, answer.headers))
    })
    request.pipe(on)
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  onTestFinished(() => void relay.close())
  const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
  const client = await agentClient(place, { ...daemon, url }, 'ada')
  await client.withLock('x', { ttl_seconds: 6 }, async (signal) => {
    const first = (await client.lock.status({ name: 'x' })).lock_expires_at!
    await expect
      .poll(async () => (await client.lock.status({ name: 'x' })).lock_expires_at! > first)
      .toBe(true)
    expect(signal.aborted).toBe(false)
  })
  expect(broken).toBe(2)
})

test('withTask keeps a task while it is worked on and completes it, or gives it back', async () => {
  const client = await clientOf({ embedded: true, dir: sandbox().state, agent: 'ada' })
  await client.task.create({ id: 'T1', title: 'One' })
  const failed = client.withTask({}, () => Promise.reject(new Error('broken')))
  await expect(failed).rejects.toThrow('broken')
  expect(await client.task.get({ id: 'T1' })).toMatchObject({ status: 'todo' })
  const done = await client.withTask({}, (_, { task, run }) => `${task.id} ${run.status}`)
  expect(done).toMatchObject({ result: 'T1 running', task: { id: 'T1', status: 'done' } })
  await client.task.create({ id: 'T2', title: 'Two' })
  await client.withTask({ id: 'T2' }, () => client.task.status({ id: 'T2', status: 'review' }))
  expect(await client.task.get({ id: 'T2' })).toMatchObject({ status: 'review' })
  expect(await client.withTask({}, () => 'nothing to do')).toBeUndefined()
})

test('a waiter that is called by the commit that gave it its place wakes at once', async () => {
  const client = await clientOf({ embedded: true, dir: sandbox().state, agent: 'ada' })
  // While events are followed nobody looks at the lines by the clock, or only every ten seconds.
  await client.events().opened
  const [one, two] = [client.as('one'), client.as('two')]
  await one.lock.acquire({ names: ['x'], process: null })
  const start_ms = performance.now()
  const waiting = two.lock.acquire({ names: ['x'], wait_seconds: 20, process: null })
  await one.lock.release({ name: 'x' })
  expect(await waiting).toMatchObject({ holder: 'two' })
  expect(performance.now() - start_ms).toBeLessThan(2_000)
})
