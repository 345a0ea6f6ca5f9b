import { expect, test } from 'vitest'
import { until } from '../support/processes.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, signIn, visit } from './signed_in.ts'

/** The page stands still where somebody looks, is right about time, and asks for little. */

const on = shareDashboard(() => ({ projects: {} }))

test('a renewal reaches the countdown, though it leaves no event', async () => {
  const held = { name: 'renewed', agent: 'ada', ttl_seconds: 120 }
  const { fence } = await on.daemon.ok('lock.acquire', held)
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=locks')
  const row = page.locator('.row', { hasText: 'renewed' })
  const shown = async () => {
    const [, minutes = '0', seconds = '0'] =
      /(?:(\d+)m )?(\d+)s/.exec(await row.locator('.countdown').innerText()) ?? []
    return Number(minutes) * 60 + Number(seconds)
  }
  await until('some of it is gone', async () => (await shown()) <= 115)
  await on.daemon.ok('lock.renew', { name: 'renewed', fence, agent: 'ada' })
  await until('the page has heard of it', async () => (await shown()) > 115)
  const said = await shown()
  const { expires_in_seconds } = await on.daemon.ok('lock.status', { name: 'renewed' })
  expect(Math.abs(said - expires_in_seconds)).toBeLessThanOrEqual(2)
})

test('rows stay under the pointer; what came is counted, and shown when asked for', async () => {
  for (const name of ['row:3', 'row:5']) {
    await on.daemon.ok('lock.acquire', { name, agent: 'ada', ttl_seconds: 600 })
  }
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=locks&q=row')
  const rows = page.getByRole('group', { name: 'Locks' }).locator('[data-id]')
  await expectSeen(rows.nth(1))
  await rows.nth(0).hover()
  await on.daemon.ok('lock.acquire', { name: 'row:1', agent: 'bob', ttl_seconds: 600 })
  await expectSeen(page.getByRole('button', { name: '1 new ↑' }))
  expect(await rows.allInnerTexts()).toEqual(['row:3', 'row:5'])
  await on.daemon.ok('lock.release', { name: 'row:3', agent: 'ada' })
  // Its place is not taken by another; that it is gone is seen.
  await expectSeen(page.locator('.row.is-gone', { hasText: 'row:3' }))
  await page.getByRole('button', { name: '1 new ↑' }).click()
  await until('they are in order', async () => {
    return (await rows.allInnerTexts()).join() === 'row:1,row:5'
  })
})

test('answers come compressed, and what looks at everything is asked once a second', async () => {
  for (let i = 0; i < 20; i += 1) await on.daemon.ok('task.create', { title: `Task number ${i}` })
  const { page } = await signIn(on)
  const packed = page.waitForResponse((response) => {
    const asked = response.request()
    // All tasks; those that run may be asked for meanwhile.
    return response.url().endsWith('/v1/task.peek') && !asked.postData()!.includes('status')
  })
  const asked_ms: number[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/v1/stuck.get')) asked_ms.push(performance.now())
  })
  await visit(page, '#/work')
  expect((await (await packed).allHeaders())['content-encoding']).toBe('gzip')
  for (let i = 0; asked_ms.length < 3; i += 1) {
    await on.daemon.ok('lock.acquire', { name: `often:${i}`, agent: 'ada', ttl_seconds: 600 })
  }
  const gaps = asked_ms.slice(1).map((at, i) => at - asked_ms[i]!)
  // This process may hear of a request a little late.
  expect(Math.min(...gaps)).toBeGreaterThan(900)
})
