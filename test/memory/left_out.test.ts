import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test, vi } from 'vitest'
import { LocalProvider } from '../../src/daemon/embedding/local.ts'
import { IndexedMeaning } from '../../src/daemon/embedding/meaning.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { temporaryFolder } from '../support/helpers.ts'

test('a model that npm was told to leave out is missed in words, not in a stack', async () => {
  const file = join(temporaryFolder(), 'embedder.mjs')
  copyFileSync(new URL('../../dist/test/embedder.mjs', import.meta.url), file)
  const model = new LocalProvider(undefined, pathToFileURL(file))
  await expect(model.embed(['a'])).rejects.toThrow(/^its packages were left out when npm/)
  await model.close()
})

test('a model that others keep busy holds up a search for five seconds', async () => {
  const folder = temporaryFolder()
  const store = openStore(placeOf({ LEASEHOLD_DIR: folder }, folder))
  const never = () => new Promise<Float32Array[]>(() => undefined)
  const close = () => Promise.resolve()
  const model = { name: 'x', dimensions: 2, alike: 1, floor: 0, embed: never, close }
  const meaning = new IndexedMeaning(store, model)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(async () => {
    vi.useRealTimers()
    meaning.stop()
    await store.close()
  })
  const asked = meaning.search('who', undefined, 5)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(await asked).toBe('x is busy with other texts')
})
