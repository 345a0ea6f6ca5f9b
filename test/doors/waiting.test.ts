import { describe, expect, it } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as locks from '../../src/operations/locks.ts'
import * as tasks from '../../src/operations/tasks.ts'
import { machine } from '../../src/machine/machine.ts'
import { ownProcess } from '../../src/machine/process.ts'
import { Store } from '../../src/stores/writer/store.ts'
import {
  callerOf,
  expectRefusal,
  FaultyBackend,
  MachineSim,
  MemoryBackend,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'
import { until } from '../support/processes.ts'

const here = (agent: string) => callerOf(agent, { process: ownProcess() })

describe('a wait that failed', () => {
  it('leaves no ticket that keeps a free lock from those who wait on', async () => {
    const backend = new FaultyBackend(new MemoryBackend(temporaryFolder()))
    const store = new Store(backend, machine)
    const ask = { name: 'a', wait_seconds: 60 }
    await call(store, locks.acquire, { name: 'a' }, here('ada'))
    backend.faults.push('lost_reply')
    await expectRefusal(call(store, locks.acquire, ask, here('bob')), 'unavailable')
    const tickets = () => store.read((view) => [...view.scan('tickets', '')])
    expect(await tickets()).toMatchObject([{ agent: 'bob' }])
    await until('the ticket that nobody waits with is gone', async () => {
      return (await tickets()).length === 0
    })
    await store.close()
  })

  it('keeps its place for a while when it can come back by its request id', async () => {
    const backend = new FaultyBackend(new MemoryBackend(temporaryFolder()))
    const store = new Store(backend, machine)
    const ask = { name: 'a', wait_seconds: 60, request_id: 'r' }
    const held = await call(store, locks.acquire, { name: 'a' }, here('ada'))
    backend.faults.push('lost_reply')
    await expectRefusal(call(store, locks.acquire, ask, here('bob')), 'unavailable')
    await until('nobody is said to wait with it', () =>
      store.read((view) => [...view.scan('tickets', '')][0]?.process === null),
    )
    const again = call(store, locks.acquire, ask, here('bob'))
    await call(
      store,
      locks.release,
      { name: 'a', fence: (held as { fence: number }).fence },
      here('ada'),
    )
    expect(await again).toMatchObject({ holder: 'bob' })
    await store.close()
  })
})

/** Nothing is looked for on the clock here: only what a commit says wakes anybody. */
async function followed() {
  const world = new MachineSim()
  const store = openSqlite(temporaryFolder(), world)
  await store.follow(3600_000)
  return { store, verbs: new QueueVerbs(store), world }
}

const claim = (store: Store, agent: string, id: string) =>
  call(store, tasks.claim, { id, queued: true, wait_seconds: 60 }, callerOf(agent))

describe('whoever waits for a task whose limit is full', () => {
  it('is woken when the queue goes on', async () => {
    const { store, verbs } = await followed()
    await verbs.enqueue({ id: '1', project: 'web' })
    await verbs.pause({})
    const waits = claim(store, 'ada', '1')
    await verbs.resume({})
    expect((await waits).task).toMatchObject({ id: '1', assignee: 'ada' })
    await store.close()
  })

  it('is woken when a limit is raised', async () => {
    const { store, verbs } = await followed()
    await verbs.enqueue({ id: '1', project: 'web' })
    await verbs.limit({ project: 'web', max: 0 })
    const waits = claim(store, 'ada', '1')
    await verbs.limit({ project: 'web', max: 1 })
    expect((await waits).task).toMatchObject({ id: '1' })
    await store.close()
  })

  it('is woken when the run that kept its user busy has ended', async () => {
    const { store, verbs, world } = await followed()
    await verbs.register('d')
    await verbs.enqueue({ id: '1', project: 'web', user: 'ann' })
    const { run } = (await verbs.dispatch('d', world.spawn()))!
    await verbs.enqueue({ id: '2', project: 'web', user: 'ann' })
    const waits = claim(store, 'ada', '2')
    await verbs.finishRun(run)
    expect((await waits).task).toMatchObject({ id: '2' })
    await store.close()
  })

  it('is woken when whoever was promised the lock of its user goes away', async () => {
    const { store, verbs } = await followed()
    const bob = callerOf('bob')
    await verbs.enqueue({ id: '1', project: 'web', user: 'ann' })
    await verbs.take('user:ann', bob)
    await verbs.wait('user:ann', callerOf('cyd'), 'T1')
    await verbs.release('user:ann', bob)
    const waits = claim(store, 'ada', '1')
    await verbs.giveUp('T1', callerOf('cyd'))
    expect((await waits).task).toMatchObject({ id: '1' })
    await store.close()
  })
})
