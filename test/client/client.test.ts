import { expect, test } from 'vitest'
import { type Client, Refusal, retryOnConflict } from '../../src/index.ts'
import { agentClient, clientOf, daemonOn, killAndRestart } from '../support/daemons.ts'
import { sandbox } from '../support/processes.ts'
import { expectRefusal } from '../support/helpers.ts'

/** What differs between two stores that were asked the same: times and fences. */
function alike(answer: unknown): unknown {
  const text = JSON.stringify(answer)
    .replaceAll(/"[^"]*(?:_at|_until)":"[^"]*"/g, '"at":""')
    .replaceAll(/"expires_in_seconds":\d+/g, '"expires_in_seconds":0')
  return JSON.parse(text)
}

/** A day in the life of an agent, as everything it was answered. */
async function storyOf(client: Client): Promise<unknown[]> {
  const said: unknown[] = []
  const tell = async (asked: Promise<unknown>) => {
    const answer = await asked.catch((error: Refusal) => error.toJSON())
    said.push(alike(answer))
  }
  await tell(client.task.create({ id: 'T1', title: 'One', labels: ['red'], metadata: { a: 1 } }))
  await tell(client.task.create({ id: 'T2', title: 'Two', depends_on: ['T1'] }))
  await tell(client.lock.acquire({ names: ['git:web', 'build'], ttl_seconds: 60 }))
  await tell(client.lock.renew({ name: 'build' }))
  await tell(client.lock.release({ name: 'build' }))
  await tell(client.lock.release({ name: 'build', fence: 77 }))
  await tell(client.task.claim({ label: 'red' }))
  await tell(client.task.claim({ id: 'T2' }))
  await tell(client.task.get({ id: 'T9' }))
  await tell(client.task.create({ title: '' }))
  await tell(client.task.status({ id: 'T1', status: 'done' }))
  await tell(client.claimNext())
  await tell(client.task.list({ ready: true }))
  await tell(client.lock.status({ name: 'git:web' }))
  await tell(client.lock.force_release({ name: 'git:web', reason: 'test' }))
  return said
}

test('the same calls get the same answers through a server and embedded', async () => {
  const place = sandbox()
  await daemonOn(place)
  const remote = await clientOf({ dir: place.state, agent: 'ada' })
  const embedded = await clientOf({ embedded: true, dir: place.path('other'), agent: 'ada' })
  // The server holds a lock for itself and one for its dispatcher, and so has drawn two fences.
  for (const lock of ['first', 'second']) await embedded.withLock(lock, () => undefined)
  const [over, inside] = [await storyOf(remote), await storyOf(embedded)]
  const codes = over.map((each) => (each as { error?: { code: string } }).error?.code ?? 'ok')
  expect(over).toEqual(inside)
  expect(codes.filter((code) => code !== 'ok')).toEqual([
    'fence_stale',
    'illegal_move',
    'not_found',
    'invalid',
  ])
})

test('a fence that was granted goes with later writes, and process and agent do too', async () => {
  const place = sandbox()
  const one = await clientOf({ embedded: true, dir: place.state, agent: 'ada' })
  const two = one.as('ada/sub')
  const lease = await one.lock.acquire({ names: ['x'] })
  expect(lease).toMatchObject({ holder: 'ada', pid: process.pid })
  await one.lock.force_release({ name: 'x' })
  await two.lock.acquire({ names: ['x'] })
  // Forgotten when it was freed, so this one speaks without a fence and is told who has it.
  await expectRefusal(one.lock.release({ name: 'x' }), 'held')
  await two.lock.release({ name: 'x' })
  const { task, lease: held } = await one.task.claim({
    id: (await one.task.create({ title: 'T' })).id,
  })
  const done = await one.task.status({ id: task!.id, status: 'done' })
  expect(done).toMatchObject({ task: { status: 'done' }, lease: null })
  expect(held!.name).toBe(`task:${task!.id}`)
})

test('of several tasks claimed at once each is ended under its own fence', async () => {
  const place = sandbox()
  const one = await clientOf({ embedded: true, dir: place.state, agent: 'ada' })
  for (const title of ['A', 'B']) await one.task.create({ title })
  const { claims } = await one.task.claim({ max: 5 })
  const [first, second] = claims!
  expect(claims!.map(({ task }) => task!.title)).toEqual(['A', 'B'])
  expect(await one.task.status({ id: first!.task!.id, status: 'done' })).toMatchObject({
    task: { status: 'done' },
  })
  // Under the fence that it was given, which is stale now that the lock was taken again.
  const { id } = second!.task!
  await place.ok(['lock', 'force-release', `task:${id}`])
  await place.ok(['lock', 'acquire', `task:${id}`, '--agent', 'bob'])
  await expectRefusal(one.task.status({ id, status: 'done' }), 'fence_stale')
})

test('a program without a server uses the store itself', async () => {
  const place = sandbox()
  const client = await clientOf({ dir: place.state })
  const { id } = await client.task.create({ title: 'Alone' })
  expect(await place.ok(['task', 'show', id])).toMatchObject({ title: 'Alone' })
  const claimed = await client.claimNext()
  expect(claimed!.lease.holder).toMatch(/^sdk:/)
})

test('a server without a token, or at no address, is refused before any call', async () => {
  await expectRefusal(clientOf({ url: 'http://127.0.0.1:1' }), 'unauthorized')
  await expectRefusal(clientOf({ url: 'nowhere', token: 't' }), 'invalid')
  const lost = await clientOf({ url: 'http://127.0.0.1:1', token: 't', retry_seconds: 0.2 })
  const no = await expectRefusal(lost.task.create({ title: 'x' }), 'unavailable')
  expect(no.next).toContain('leasehold up')
})

test('what asking again cannot change is refused at once', async () => {
  const place = sandbox()
  const store = `file:${place.path('files')}`
  const client = await clientOf({ dir: place.state, embedded: true, store })
  const begun = performance.now()
  await expectRefusal(client.stats.get({}), 'invalid')
  // A call goes on trying for 15 s where that may help.
  expect(performance.now() - begun).toBeLessThan(10_000)
})

test('calls survive kill -9 of the server and its restart, with one effect each', async () => {
  const place = sandbox()
  let daemon = await daemonOn(place)
  const client = await agentClient(place, daemon, 'ada')
  const made: string[] = []
  let stop = false
  const agents = Array.from({ length: 8 }, async (_, i) => {
    for (let n = 0; !stop; n += 1) {
      const { id } = await client.task.create({ title: `${i}-${n}` })
      made.push(id)
    }
  })
  for (let kill = 0; kill < 3; kill += 1) {
    const before = made.length
    await expect.poll(() => made.length).toBeGreaterThan(before + 40)
    daemon = await killAndRestart(place, daemon)
  }
  stop = true
  await Promise.all(agents)
  const titles = new Set<string>()
  let total = 0
  for (let after: string | undefined; ;) {
    const page = await client.task.list({ limit: 1000, ...(after && { after }) })
    for (const task of page.items) titles.add(task.title)
    total += page.items.length
    if (page.next === null) break
    after = page.next
  }
  expect({ total, titles: titles.size }).toEqual({ total: made.length, titles: made.length })
})

test('eight editors of one task lose no edit', async () => {
  const place = sandbox()
  const daemon = await daemonOn(place)
  const client = await agentClient(place, daemon, 'ada')
  const { id } = await client.task.create({ title: 'Shared' })
  let conflicts = 0
  const editOnce = (label: string) =>
    retryOnConflict(async (conflict) => {
      if (conflict) conflicts += 1
      const { version, labels } = await client.task.get({ id })
      await client.task.update({ id, version, labels: [...labels, label] })
    })
  const editors = Array.from({ length: 8 }, async (_, i) => {
    for (let n = 0; n < 5; n += 1) {
      const label = `${i}-${n}`
      // Five tries may all meet somebody faster; then nothing was written, and it asks anew.
      while (!(await editOnce(label).then(() => true, isConflict)));
    }
  })
  await Promise.all(editors)
  const { labels, version } = await client.task.get({ id })
  expect(new Set(labels).size).toBe(40)
  expect({ labels: labels.length, version }).toEqual({ labels: 40, version: 41 })
  expect(conflicts).toBeGreaterThan(0)
})

function isConflict(error: unknown): false {
  if (error instanceof Refusal && error.code === 'conflict') return false
  throw error
}
