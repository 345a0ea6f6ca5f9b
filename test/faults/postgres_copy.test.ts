import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { copyStore } from '../../src/stores/copy/copy.ts'
import { openStore, type Place, placeOf } from '../../src/stores/open.ts'
import { callerOf, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { Running } from '../support/processes.ts'

const TASKS = 1_200
const ada = callerOf('ada')
const PROGRAM = fileURLToPath(new URL('../../dist/test/postgres_copier.mjs', import.meta.url))

async function looked<T>(place: Place, look: (verbs: Verbs) => Promise<T>): Promise<T> {
  const store = openStore(place)
  return look(new Verbs(store)).finally(() => store.close())
}

const titlesIn = (place: Place) =>
  looked(place, ({ store }) =>
    store.read((view) => [...view.scan('tasks', '')].map(({ title }) => title)),
  )

async function scene() {
  const folder = temporaryFolder()
  const stores = { from: `file:${join(folder, 'files')}`, to: postgresUrl(folder) }
  const placed = (store: string) =>
    placeOf({ LEASEHOLD_DIR: folder, LEASEHOLD_STORE: store }, folder)
  const from = placed(stores.from)
  await looked(from, async (verbs) => {
    const all = Array.from({ length: TASKS }, (_, i) => verbs.add(`task ${i}`, ada))
    await Promise.all(all)
  })
  const killed = async (step: string) => {
    const args = [PROGRAM, folder, stores.from, stores.to, step]
    const { signal, err } = await new Running(spawn(process.execPath, args), undefined).ended
    expect(`${signal}${err}`).toBe('SIGKILL')
    // The server may still be at work for it: whoever has the lock comes after that.
    await looked(placed(stores.to), ({ store }) => store.write(() => undefined))
  }
  return { from, to: placed(stores.to), killed }
}

describe('a copy to PostgreSQL that is killed', () => {
  test('while it reads back leaves an empty store, and the next one succeeds', async () => {
    const { from, to, killed } = await scene()
    await killed('checked')
    expect(await titlesIn(to)).toEqual([])
    await copyStore(from, to, { keep_source: true })
    expect(await titlesIn(to)).toEqual(await titlesIn(from))
  })

  test('when it has asked for COMMIT leaves all of it or nothing', async () => {
    const { from, to, killed } = await scene()
    await killed('sent')
    const found = await titlesIn(to)
    const next = copyStore(from, to, { keep_source: true }).then(
      () => 'copied',
      (error: { code: string }) => error.code,
    )
    // Where it is there, a second copy has nothing to add and says so.
    expect(await next).toBe(found.length === 0 ? 'copied' : 'conflict')
    expect(await titlesIn(to)).toEqual(await titlesIn(from))
  })
})
