import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { GitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import { hrefOfLanding, playLine, playShop, shopConfig, shopRepo } from './branch_scene.ts'
import { Asking, play } from './scene.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, linkFrom, openWindow, signIn, visit } from './signed_in.ts'

const WEB = fileURLToPath(new URL('../../dist/web', import.meta.url))
const BUNDLE_MAX = 70 * 1024

/** Each would do something if any part of it were taken for markup, script or a link to follow. */
const HOSTILE = [
  '<script>window.harm=1</script>',
  '<img src=x onerror="window.harm=1">',
  '"><svg onload=window.harm=1>',
  "'-window.harm=1-'",
  'javascript:window.harm=1',
  '{{constructor.constructor("window.harm=1")()}}',
  '</textarea><iframe srcdoc="<script>parent.harm=1</script>">',
  '\u202Egnp.exe</title><b>bold</b>',
]

/** Every view, and something of the scene that it shows once it has asked for it. */
const VIEWS: Record<string, string> = {
  '#/now': 'Find out why builds are slow on Mondays',
  '#/tasks': 'W-205',
  '#/locks': 'deploy:production',
  '#/locks?id=git%3Aweb': 'Who held it when',
  '#/locks?tab=waits': 'Deadlock found',
  '#/locks?tab=paths': 'session.ts',
  '#/branches': 'docs/opening',
  '#/branches?q=sale': 'it conflicts with main in src/price.ts',
  '#/branches?tab=worktrees&id=S-mail.1': 'leasehold worktree remove S-mail.1',
  '#/tasks?id=S-price': 'Proved by',
  '#/tasks?as=list&q=W-205': 'W-205',
  '#/tasks?id=W-202': 'Held and waited',
  '#/agents?id=claude-1': 'Waits for',
  '#/timeline': 'killed or cancelled',
  '#/memory': 'deploy.window',
  '#/memory?tab=conflicts': 'They expire after 12 hours.',
  '#/memory?tab=duplicates': 'Duplicates',
  '#/agents': 'release-bot',
  '#/events?type=memory': 'memory.put',
  '#/stats': 'Most contended locks',
}

let asking: Asking
let repo: GitRepo

const on = shareDashboard((place) => shopConfig((repo = shopRepo(place.path('shop')))))

beforeAll(async () => {
  asking = new Asking(on.daemon.url, on.daemon.secret)
  await playShop(asking)
  await playLine(asking, repo)
  VIEWS[await hrefOfLanding(asking, 'S-tax')] = '1 failed, 40 passed'
  await play(asking)
})

afterAll(() => asking.close())

/** Every view in turn, each given the time to ask for what it shows. */
async function throughViews(page: Page, look: (hash: string) => Promise<void>): Promise<void> {
  for (const [hash, text] of Object.entries(VIEWS)) {
    await visit(page, hash)
    await page.locator('main').getByText(text).first().waitFor()
    await look(hash)
  }
}

test('what agents write is shown as text, whatever it looks like', async () => {
  for (const [i, text] of HOSTILE.entries()) {
    const agent = `agent ${text}`
    const id = `hostile-${i}`
    const words = { title: text, body: text, project: text, user: text, labels: [text] }
    await on.daemon.ok('task.create', { id, ...words, agent })
    await on.daemon.ok('task.claim', { id, agent })
    await on.daemon.ok('lock.acquire', { name: `lock ${text}`, agent })
    const key = text.replace('\u202E', '')
    await on.daemon.ok('memory.put', { key, content: text, agent })
    await on.daemon.ok('memory.put', { key, content: `not ${text}`, agent: 'other' })
    await on.daemon.ok('lock.force_release', { name: `lock ${text}`, reason: text })
  }
  const { page } = await signIn(on)
  await throughViews(page, async (hash) => {
    expect(await page.evaluate('window.harm'), hash).toBeUndefined()
    expect(await page.locator('main iframe, main script, main img').count(), hash).toBe(0)
  })
  await visit(page, '#/tasks?id=hostile-1')
  await page.getByRole('heading', { name: HOSTILE[1]! }).waitFor()
  await page.getByRole('region', { name: 'History' }).getByText('task.created').waitFor()
  expect(await page.evaluate('window.harm')).toBeUndefined()
})

const SEEN = [
  { colorScheme: 'light', width: 1440 },
  { colorScheme: 'dark', width: 1024 },
  { colorScheme: 'light', width: 390 },
] as const

test.each(SEEN)('nobody is shut out: axe finds nothing, %o', async ({ colorScheme, width }) => {
  // The policy of the page would not let axe in; only here it is set aside.
  const viewport = { width, height: 850 }
  const { page } = await openWindow(on, { bypassCSP: true, colorScheme, viewport })
  await page.goto(await linkFrom(on.place))
  await page.getByText('Live', { exact: true }).waitFor()
  await page.evaluate(axe.source)
  await throughViews(page, async (hash) => {
    expect({ hash, found: await findings(page) }).toEqual({ hash, found: [] })
    const wide = await page.evaluate('document.documentElement.scrollWidth')
    expect({ hash, wide, squeezed: await squeezed(page) }).toEqual({
      hash,
      wide: width,
      squeezed: [],
    })
  })
  await visit(page, '#/tasks?id=W-201')
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('region', { name: 'Edit' }).waitFor()
  expect(await findings(page)).toEqual([])
  // What would have been found, had it been there.
  await page.evaluate(`document.querySelector('h1').append(document.createElement('button'))`)
  expect(await findings(page)).toEqual([expect.stringMatching(/^button-name/)])
})

/** Names that stand letter below letter, or of which only a few letters are seen. */
async function squeezed(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('main :is(a, h2, strong, code, time)')]
    .filter((each) => !each.closest('.card') && each.innerText?.trim().length > 6)
    .filter((each) => {
      const { width } = each.getBoundingClientRect()
      const { clientWidth, scrollWidth } = each
      return (width > 0 && width < 30) || (clientWidth < 50 && scrollWidth > clientWidth)
    })
    .map((each) => each.outerHTML.slice(0, 120))`)
}

/** What axe finds, each with the first place it was found at. */
async function findings(page: Page): Promise<string[]> {
  return page.evaluate(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => {
      return id + ' ' + nodes[0].html.slice(0, 160) + nodes[0].failureSummary
    }))`)
}

test('keys lead everywhere: views, lists, search, help and back', async () => {
  const { page } = await signIn(on)
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.activeElement.id')).toBe('main')
  await page.keyboard.press('3')
  await page.getByRole('heading', { name: 'Locks' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('git:web')
  await page.getByRole('link', { name: 'db:staging' }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'git:web' }).press('Enter')
  await page.getByRole('complementary', { name: 'Lock git:web' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Lock git:web' }).waitFor({ state: 'detached' })
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Control+k')
  await page.locator('dialog.palette input:focus').waitFor()
  await page.keyboard.type('W-205')
  await page.getByRole('option', { name: /W-205/ }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'History' }).waitFor()
  await page.keyboard.press('2')
  await visit(page, '#/tasks?as=list')
  await page.getByText(/^\d+ tasks$/).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('k')
  const id = await page.evaluate('document.activeElement.dataset.id')
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'History' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('group', { name: 'Tasks' }).waitFor()
  // Back where it was.
  await until('the keyboard is back', async () => {
    return (await page.evaluate('document.activeElement.dataset.id')) === id
  })
})

test('the deadlock that was found is drawn', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/locks?tab=waits')
  const found = page.getByRole('region', { name: 'Deadlock found' })
  await expectSeen(
    found.getByRole('group', { name: /claude-1 waits for db:staging, held by claude-2/ }),
  )
})

test('what a browser loads stays under 70 KB', () => {
  const names = readdirSync(WEB, { recursive: true }).map(String)
  const files = names.filter((name) => /\.(?:js|css|html|svg)$/.test(name))
  expect(files.some((name) => name.endsWith('.js'))).toBe(true)
  const sizes = files.map((name) => gzipSync(readFileSync(join(WEB, name))).length)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(BUNDLE_MAX)
})
