import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Dispatcher } from '../../src/daemon/dispatcher.ts'
import { machine } from '../../src/stores/machine.ts'
import { placeOf } from '../../src/stores/open.ts'
import { Store } from '../../src/stores/store.ts'
import { FaultyBackend, sqliteBackend, temporaryFolder } from '../helpers.ts'
import { until } from '../processes.ts'
import { QueueVerbs } from '../queue_verbs.ts'

/** L4, L5: what the store refused once is tried again without anything happening meanwhile. */
test('a dispatcher whose claim the store could not take tries again by itself', async () => {
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
  backend.faults.push('fail', 'fail')
  await new QueueVerbs(beside).enqueue({ id: '1', project: 'web' })
  const claims = async () => (await store.events(0, 1_000)).filter(isClaim)
  await until('the task is claimed', async () => (await claims()).length > 0)
  expect(said.filter((sentence) => sentence.startsWith('could not dispatch'))).not.toEqual([])
})

const isClaim = ({ type }: { type: string }) => type === 'task.claimed'
