import { expect, test } from 'vitest'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, expectRefusal, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'
import { MemoryBackend } from '../support/memory_backend.ts'

const LONG = 12_000

test('a chain of dependencies may be as long as it likes, and a loop in it is found', async () => {
  const backend = new MemoryBackend({ place: temporaryFolder(), forgetful: false })
  const verbs = new Verbs(new Store(backend, new MachineSim()))
  const ada = callerOf('ada')
  for (let n = 0; n < LONG; n += 1) {
    await verbs.add('x', ada, { id: `t${n}`, depends_on: n === 0 ? [] : [`t${n - 1}`] })
  }
  await verbs.add('x', ada, { id: 'last' })
  await verbs.edit('last', 1, { depends_on: [`t${LONG - 1}`] }, ada)
  expect(await verbs.task('last')).toMatchObject({ unmet: 1 })
  const no = await expectRefusal(verbs.edit('t0', 1, { depends_on: ['last'] }, ada), 'invalid')
  const loop = no.details['loop'] as string[]
  expect(loop).toHaveLength(LONG + 2)
  expect(loop.slice(0, 3)).toEqual(['t0', 'last', `t${LONG - 1}`])
  await verbs.store.close()
})
