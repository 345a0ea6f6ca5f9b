import { afterEach, expect, test } from 'vitest'
import { strategyOf } from '../../src/core/memory/settings.ts'
import { plant } from '../../src/core/planted.ts'
import { MachineSim, openMemory, openSqlite, temporaryFolder } from '../support/helpers.ts'
import { MemoryVerbs } from '../support/memory_verbs.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'

afterEach(() => plant(undefined))

/** What is left of the limit that one host set, when another host's config.json was read. */
async function leftAfterAnother(): Promise<unknown> {
  const verbs = new QueueVerbs(openMemory(temporaryFolder(), new MachineSim()))
  await verbs.settings({ limits: new Map([['project:web', 2]]) }, 'h1')
  await verbs.settings({}, 'h2')
  return (await verbs.whole()).limits[0]?.max
}

test('S8: a limit stays when a config.json that does not name it is read', async () => {
  expect(await leftAfterAnother()).toBe(2)
  plant('S8')
  expect(await leftAfterAnother()).not.toBe(2)
})

test('settings of memory belong to the host that named them last, too', async () => {
  const store = openSqlite(temporaryFolder(), new MachineSim())
  const memory = new MemoryVerbs(store)
  const inForce = () =>
    store.read((view) => ['global', 'user:ann'].map((scope) => strategyOf(view, scope)))
  await memory.settings({ strategies: { global: 'union', 'user:*': 'text' } }, 'h1')
  await memory.settings({ strategies: { global: 'newest' } }, 'h2')
  expect(await inForce()).toEqual(['newest', 'text'])
  await memory.settings({}, 'h2')
  expect(await inForce()).toEqual(['manual', 'text'])
  await memory.settings({ strategies: { global: 'union' } }, 'h1')
  expect(await inForce()).toEqual(['union', 'manual'])
  await store.close()
})
