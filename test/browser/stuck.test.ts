import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Json, startDaemon } from '../doors/serving.ts'
import { until } from '../support/processes.ts'
import { caused, SITUATIONS, STAGE } from '../support/situations.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, steady } from './signed_in.ts'

/** Why is nothing happening? The first screen says it, in the words of the server. */

const on = shareDashboard(() => STAGE)

/** Expects the cause, in words that the server uses for it, on what is seen without scrolling. */
async function expectFirstSeen(page: Page, { what, why }: Json): Promise<void> {
  const stuck = page.getByRole('region', { name: 'Blocked now' })
  const row = await until(`the page says: ${what}`, async () => {
    for (const each of await stuck.locator('.cause').all()) {
      const said = await each.locator('.cause-says').textContent({ timeout: 500 })
      if (steady(said ?? '') === steady(what)) return each
    }
    return undefined
  })
  if (why !== what) expect(steady(await row.innerText())).toContain(steady(why))
  const box = await row.locator('.cause-says').boundingBox()
  expect(box!.y + box!.height).toBeLessThan(page.viewportSize()!.height)
}

/** How things stand, beside the menu and in the tab, is what the server says. */
async function expectHealth(page: Page): Promise<void> {
  const { state } = (await on.daemon.ok('stuck.get')).health
  const [name, title] =
    state === 'ok' ? ['Healthy', /^Now/] : [state, new RegExp(`^${state} · `, 'i')]
  await expectSeen(page.locator('.health-state', { hasText: new RegExp(`^${name}$`, 'i') }))
  await until(`the tab says ${name}`, async () => title.test(await page.title()))
}

describe('nothing happens', () => {
  let page: Page
  beforeAll(async () => {
    // One page for all: it must notice each by itself.
    const context = await on.browser.newContext()
    page = await context.newPage()
    await page.goto((await on.place.ok(['up', '--link'])).link)
    await expectSeen(page.getByText('Nothing needs a person'))
  })

  test.each(Object.keys(SITUATIONS) as (keyof typeof SITUATIONS)[])('%s', async (name) => {
    const { kind, says, stage } = SITUATIONS[name]
    const end = await stage(on.all)
    const cause = await caused(on, kind)
    expect(cause.what).toMatch(says)
    await expectFirstSeen(page, cause)
    await expectHealth(page)
    await end()
  })

  test('server hung', async () => {
    process.kill(on.daemon.running.pid, 'SIGSTOP')
    onTestFinished(() => void process.kill(on.daemon.running.pid, 'SIGCONT'))
    await expectSeen(page.getByRole('alert').getByText('is connected, but says nothing'))
    expect(await page.title()).toMatch(/^Silent · /)
  })

  test('no dispatcher', async () => {
    const { all, place } = on
    const flags = ['--port', String(on.daemon.port)]
    await on.daemon.stop()
    const dispatcher = await all.dispatch()
    all.daemon = on.daemon = await startDaemon(place, { flags })
    // The daemon stands by, and could not take over: its configuration makes no sense.
    all.save('{')
    dispatcher.kill('SIGTERM')
    await dispatcher.ended
    const cause = await caused(on, 'no_dispatcher')
    expect(cause.what).toBe('1 task waits for a dispatcher, and none is running')
    await expectFirstSeen(page, cause)
    await expectHealth(page)
  })
})
