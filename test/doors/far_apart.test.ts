import { expect, onTestFinished, test } from 'vitest'
import type { Caller } from '../../src/core/caller.ts'
import { createTask } from '../../src/core/tasks/task.ts'
import { call } from '../../src/operations/call.ts'
import { list } from '../../src/operations/tasks.ts'
import { callerOf, MachineSim, openSqlite, temporaryFolder } from '../support/helpers.ts'
import { FIELDS } from '../support/verbs.ts'

const OTHERS = 2_500
/** Between two tasks of hers lie many of his; and behind the last. */
const HERS = [0, 1, 1_300, 1_301, 2_499]

test('a page of a bound token is made in steps, and tells of nothing between them', async () => {
  const machine = new MachineSim()
  const store = openSqlite(temporaryFolder(), machine)
  onTestFinished(() => store.close())
  await store.write((view) => {
    const ada = callerOf('ada')
    for (let n = 0; n < OTHERS; n += 1) {
      if (HERS.includes(n))
        createTask(view, { ...FIELDS, id: `a${n}`, title: 'x', user: 'ann' }, ada)
      createTask(view, { ...FIELDS, id: `b${n}`, title: 'x', user: 'bob' }, ada)
    }
  })
  const scope = { users: ['ann'], projects: 'all' as const, task: null }
  const ann = { ...callerOf('ann-agent'), scope } as Caller
  let looks = 0
  const read = store.read.bind(store)
  store.read = (decide) => ((looks += 1), read(decide))
  const all = HERS.map((n) => `a${n}`)
  for (const limit of [2, 5, 6]) {
    const found: string[] = []
    let after: string | undefined
    do {
      const page = await call(store, list, { limit, ...(after && { after }) }, ann)
      expect(page.items.length).toBeLessThanOrEqual(limit)
      expect(page.items.length, 'no page is empty').toBeGreaterThan(0)
      found.push(...page.items.map(({ id }) => id))
      after = page.next ?? undefined
      const named = Buffer.from(after ?? '', 'base64url').toString()
      expect(named).not.toMatch(/"b\d/)
    } while (after)
    expect(found).toEqual(all)
  }
  looks = 0
  await call(store, list, { limit: 100 }, ann)
  expect(looks, 'others are answered meanwhile').toBeGreaterThan(OTHERS / 1_000)
})
