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
const BUNDLE_MAX = 55 * 1024

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
  '#/work': 'To do',
  '#/work?q=W-205': 'W-205',
  '#/work?show=failed': 'Failed',
  '#/work?as=board&q=W-205': 'W-205',
  '#/work?id=S-price': 'Proved by',
  '#/work?id=W-202': 'Story',
  '#/who': 'working',
  '#/who?id=claude-1': 'Waits for',
  '#/who?path=src%2Flogin%2Fform.tsx': 'src/login/**',
  '#/who?tab=locks': 'deploy:production',
  '#/who?tab=locks&show=awaited&id=git%3Aweb': 'Who held it when',
  '#/who?tab=landings': 'docs/opening',
  '#/who?tab=landings&q=sale': 'it conflicts with main in src/price.ts',
  '#/who?tab=worktrees&id=S-mail.1': 'refs/leasehold/salvage/S-mail.1',
  '#/history': 'killed or cancelled',
  '#/history?type=memory': 'memory.put',
  '#/history?tab=trends': 'Most contended locks',
  '#/knowledge': 'deploy.window',
  '#/knowledge?scope=project%3Aweb&id=deploy.window': 'weekdays before 15:00',
  '#/knowledge?tab=conflicts': 'They expire after 12 hours.',
  '#/knowledge?tab=duplicates': 'Duplicates',
  '#/settings': 'Queue by user',
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
  await visit(page, '#/work?id=hostile-1')
  await page.getByRole('heading', { name: HOSTILE[1]! }).waitFor()
  await expectSeen(page.getByRole('region', { name: 'Story' }).getByText(/added/))
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
  const found: Record<string, unknown> = {}
  await throughViews(page, async (hash) => {
    const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
    const all = [...(await findings(page)), ...(await squeezed(page))]
    if (all.length > 0 || wide !== width) found[hash] = { wide, all }
  })
  expect(found).toEqual({})
  await visit(page, '#/work?id=W-201')
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog', { name: 'Edit task W-201' }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
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
  await page.getByRole('heading', { name: 'Who has what', level: 1 }).waitFor()
  await visit(page, '#/who?tab=locks')
  await page.getByRole('link', { name: 'git:web', exact: true }).first().waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('git:web')
  const list = page.getByRole('group', { name: 'Locks' })
  await list.getByRole('link', { name: 'port:5173' }).waitFor({ state: 'detached' })
  await list.getByRole('link', { name: 'git:web' }).press('Enter')
  await page.getByRole('complementary', { name: 'Lock git:web' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Lock git:web' }).waitFor({ state: 'detached' })
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Control+k')
  await page.locator('input[type=search]:focus').waitFor()
  await page.keyboard.type('W-205')
  await page
    .getByRole('group', { name: 'Tasks' })
    .getByRole('link', { name: /W-205/ })
    .press('Enter')
  await page.getByRole('region', { name: 'Story' }).waitFor()
  await page.keyboard.press('2')
  await page.getByText(/^[\d,]+ of [\d,]+ tasks$/).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('k')
  const id = await page.evaluate('document.activeElement.dataset.id')
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'Story' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('group', { name: 'Tasks' }).waitFor()
  // Back where it was.
  await until('the keyboard is back', async () => {
    return (await page.evaluate('document.activeElement.dataset.id')) === id
  })
})

test('the deadlock that was found is spelled out, wait by wait', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=locks')
  const found = page.getByRole('region', { name: /^Deadlock found/ })
  await expectSeen(found.getByText('claude-1 waits for db:staging, which claude-2 has'))
  await expectSeen(found.getByText('claude-2 waits for git:web, which claude-1 has'))
})

test('a path is answered by the glob that covers it, with its holder', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/who')
  await page.getByLabel('Who has this path').fill('src/login/form.tsx')
  const answer = page.getByRole('status', { name: 'Who has src/login/form.tsx' })
  await expectSeen(answer.getByRole('link', { name: 'claude-1' }))
  await expectSeen(answer.getByText('src/login/**', { exact: true }))
  const checked = { paths: ['src/login/form.tsx'], project: 'web' }
  const { items } = await on.daemon.ok('reserve.check', checked)
  expect(items[0]).toMatchObject({ holder: 'claude-1', reserved: 'src/login/**' })
  await page.getByLabel('Who has this path').fill('docs/guide.md')
  await expectSeen(page.getByRole('link', { name: 'claude-4' }))
  expect(await page.getByText('shared', { exact: true }).count()).toBe(2)
  await page.getByLabel('Who has this path').fill('nobody/has/this.ts')
  await expectSeen(page.getByText('Nobody has it reserved.'))
})

test('what a browser loads stays under 55 KB', () => {
  const names = readdirSync(WEB, { recursive: true }).map(String)
  const files = names.filter((name) => /\.(?:js|css|html|svg)$/.test(name))
  expect(files.some((name) => name.endsWith('.js'))).toBe(true)
  const sizes = files.map((name) => gzipSync(readFileSync(join(WEB, name))).length)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(BUNDLE_MAX)
})
