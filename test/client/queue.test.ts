import { expect, test } from 'vitest'
import type { Client } from '../../src/index.ts'
import { agentClient, clientOf, daemonOn } from '../support/daemons.ts'
import { expectRefusal } from '../support/helpers.ts'
import { sandbox } from '../support/processes.ts'

/** A task from enqueuing to its end, by typed calls. */
async function story(client: Client, admin: Client): Promise<void> {
  const ask = { prompt: 'Mend it', project: 'web', user: 'alice' }
  const { task, position } = await client.queue.add({ ...ask, time_limit_seconds: 90, retries: 1 })
  expect(position).toBe(1)
  const limit_seconds: number | null = task.queue!.time_limit_seconds
  expect([limit_seconds, task.queue!.retries]).toEqual([90, 1])
  const { task: second } = await client.queue.add({ ...ask, priority: 9 })
  expect((await client.queue.list({ user: 'alice' })).items.map(({ id }) => id)).toEqual([
    second.id,
    task.id,
  ])
  expect(await client.claimNext()).toBe(undefined)
  const done = await client.withTask({ id: task.id, queued: true }, async () => {
    const status = await client.queue.status()
    expect(status.pending).toMatchObject({ total: 1, high: 1, by_user: { alice: 1 } })
    expect(status.user_locks.details[0]).toMatchObject({ user: 'alice', task_id: task.id })
    const lock = await client.lock.status({ name: 'user:alice' })
    expect([lock.is_locked, lock.task_id]).toEqual([true, task.id])
    await expectRefusal(client.task.claim({ id: second.id, queued: true }), 'held')
    return (await client.run.get({ id: `${task.id}.1` })).lock_released
  })
  expect(done).toMatchObject({ result: false, task: { status: 'done' } })
  expect((await client.run.get({ id: `${task.id}.1` })).lock_released).toBe(true)
  expect((await client.run.list({ task_id: task.id })).items).toHaveLength(1)
  expect(await client.queue.cancel({ id: second.id })).toMatchObject({ status: 'cancelled' })
  expect((await client.queue.retry({ id: second.id })).position).toBe(1)
  const limit = await admin.queue.limit({ user: 'alice', max: 2, weight: 3 })
  expect(limit).toMatchObject({ max: 2, weight: 3, used: 0 })
  expect(await admin.queue.pause({ project: 'web' })).toMatchObject({ paused: true })
  expect((await client.queue.status()).paused_projects).toEqual(['web'])
  expect(await admin.queue.resume({ project: 'web' })).toMatchObject({ paused: false })
  expect((await admin.queue.cleanup()).items).toEqual([])
  await expectRefusal(admin.queue.release_user({ user: 'alice' }), 'not_found')
}

test('the queue is used by typed calls, through a server and embedded', async () => {
  const place = sandbox()
  const daemon = await daemonOn(place)
  const agent = await agentClient(place, daemon, 'ada')
  await story(agent, await clientOf({ dir: place.state }))
  await expectRefusal(agent.queue.pause(), 'forbidden')
  const embedded = await clientOf({ embedded: true, dir: place.path('other'), agent: 'ada' })
  await story(embedded, embedded)
})

test('what a run is started and finished with is not taken for a lease of its client', async () => {
  const place = sandbox()
  const client = await clientOf({ embedded: true, dir: place.state, agent: 'ada' })
  const { task } = await client.queue.add({ prompt: 'x', project: 'web', user: 'alice' })
  const { run, lease } = await client.task.claim({ id: task.id, queued: true })
  const finished = await client.run.finish({ id: run!.id, fence: lease!.fence, exit_code: 0 })
  expect(finished).toMatchObject({ status: 'completed', lock_released: true, outcome: 'exit 0' })
  const again = await client.queue.add({ prompt: 'x', project: 'web', user: 'alice' })
  expect((await client.task.claim({ id: again.task.id, queued: true })).lease).toMatchObject({
    name: `task:${again.task.id}`,
  })
})
