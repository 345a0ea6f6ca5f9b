import { expect, onTestFinished, test } from 'vitest'
import { createTask } from '../../src/core/tasks/task.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  openSqlite,
  temporaryFolder,
  Verbs,
} from '../support/helpers.ts'
import { FIELDS } from '../support/verbs.ts'

const LONG = 12_000

test('a chain of dependencies may be as long as it likes, and a loop in it is found', async () => {
  const store = openSqlite(temporaryFolder(), new MachineSim())
  onTestFinished(() => store.close())
  const verbs = new Verbs(store)
  const ada = callerOf('ada')
  await store.write((view) => {
    for (let n = 0; n < LONG; n += 1) {
      const depends_on = n === 0 ? [] : [`t${n - 1}`]
      createTask(view, { ...FIELDS, title: 'x', id: `t${n}`, depends_on }, ada)
    }
  })
  await verbs.add('x', ada, { id: 'last' })
  await verbs.edit('last', 1, { depends_on: [`t${LONG - 1}`] }, ada)
  expect(await verbs.task('last')).toMatchObject({ unmet: 1 })
  const no = await expectRefusal(verbs.edit('t0', 1, { depends_on: ['last'] }, ada), 'invalid')
  const loop = no.details['loop'] as string[]
  expect(loop).toHaveLength(LONG + 2)
  expect(loop.slice(0, 3)).toEqual(['t0', 'last', `t${LONG - 1}`])
})
