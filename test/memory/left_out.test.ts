import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { LocalProvider } from '../../src/daemon/embedding/local.ts'
import { temporaryFolder } from '../support/helpers.ts'

test('a model that npm was told to leave out is missed in words, not in a stack', async () => {
  const file = join(temporaryFolder(), 'embedder.cjs')
  copyFileSync(new URL('../../dist/test/embedder.cjs', import.meta.url), file)
  const model = new LocalProvider(undefined, pathToFileURL(file))
  await expect(model.embed(['a'])).rejects.toThrow(/^its packages were left out when npm/)
  await model.close()
})
