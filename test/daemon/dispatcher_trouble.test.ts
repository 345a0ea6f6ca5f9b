import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Dispatcher } from '../../src/daemon/dispatch/dispatcher.ts'
import { machine } from '../../src/machine/machine.ts'
import { placeOf } from '../../src/stores/open.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { FaultyBackend, sqliteBackend, temporaryFolder } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'

/** A dispatcher on a store that can be made to fail, and another way to that store. */
async function begin() {
  const folder = temporaryFolder()
  const agents = { mine: { command: ['true'] } }
  const config = { agents, projects: { web: { agent: 'mine', path: folder } } }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 })
  const backend = new FaultyBackend(sqliteBackend(folder))
  const store = new Store(backend, machine)
  const beside = new Store(sqliteBackend(folder), machine)
  const said: string[] = []
  const dispatcher = new Dispatcher(store, {
    place: placeOf({ LEASEHOLD_DIR: folder }, folder),
    env: { LEASEHOLD_TRUST_CONFIG: 'yes' },
    url: () => 'http://127.0.0.1:1',
    say: (sentence) => void said.push(sentence),
  })
  onTestFinished(async () => {
    await dispatcher.stop()
    await store.close()
    await beside.close()
  })
  await dispatcher.start()
  await store.follow(10)
  const complaints = () => said.filter((each) => each.startsWith('could not dispatch'))
  return { backend, store, verbs: new QueueVerbs(beside), complaints }
}

/** L4, L5: what the store refused once is tried again without anything happening meanwhile. */
test('a dispatcher whose claim the store could not take tries again by itself', async () => {
  const { backend, store, verbs, complaints } = await begin()
  backend.faults.push('fail', 'fail')
  await verbs.enqueue({ id: '1', project: 'web' })
  const claims = async () => (await store.events(0, 1_000)).filter(isClaim)
  await until('the task is claimed', async () => (await claims()).length > 0)
  expect(complaints()).not.toEqual([])
})

test('a task is not to blame when no process can be started', async () => {
  const { store, verbs, complaints } = await begin()
  // As after an upgrade that removed the program we were started from, or without descriptors.
  const path = process.execPath
  onTestFinished(() => void (process.execPath = path))
  process.execPath = join(temporaryFolder(), 'gone')
  await verbs.enqueue({ id: '1', project: 'web' })
  await until('it was tried twice', () => complaints().length > 1)
  expect(complaints()[0]).toContain('No process could be started')
  const task = () => store.read((view) => view.get('task', '1'))
  await until('it waits again', async () => (await task())?.status === 'todo')
  expect(await task()).toMatchObject({ queue: { lost: 0 } })
})

test('a dispatcher fills its free slots with one commit', async () => {
  const { store, verbs } = await begin()
  const claims: number[] = []
  store.onCommit((events) => {
    const count = events.filter(isClaim).length
    if (count > 0) claims.push(count)
  })
  await verbs.pause()
  for (let i = 0; i < 4; i += 1) await verbs.enqueue({ id: `${i}`, project: 'web', user: `u${i}` })
  await verbs.resume()
  await until('something is claimed', () => claims.length > 0)
  expect(claims[0]).toBe(4)
})

test('of many tasks that no process can be started for, all wait again at once', async () => {
  const { store, verbs, complaints } = await begin()
  const path = process.execPath
  onTestFinished(() => void (process.execPath = path))
  await verbs.pause()
  for (let i = 0; i < 3; i += 1) await verbs.enqueue({ id: `${i}`, project: 'web', user: `u${i}` })
  process.execPath = join(temporaryFolder(), 'gone')
  await verbs.resume()
  await until('it was tried', () => complaints().length > 0)
  const tasks = () => store.read((view) => ['0', '1', '2'].map((id) => view.get('task', id)!))
  await until('all wait', async () => (await tasks()).every(({ status }) => status === 'todo'))
  for (const task of await tasks()) expect(task).toMatchObject({ queue: { lost: 0 } })
})

const isClaim = ({ type }: { type: string }) => type === 'task.claimed'
