import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { launch, LOOKS } from './browser.ts'
import { hrefOfLanding, playLine, playShop, shopConfig, shopRepo } from './branch_scene.ts'
import { Asking, configure, play } from './scene.ts'

/** `npm run screenshots`: every view, light and dark, wide and narrow, of the same busy morning. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OUT = process.env['OUT'] ?? join(ROOT, 'docs/screenshots')
const BIN = join(ROOT, 'bin/leasehold')

const VIEWS: Record<string, string> = {
  now: '#/now',
  work: '#/work',
  board: '#/work?as=board',
  failed: '#/work?id=Q-broken',
  task: '#/work?id=Q-ada-1',
  agents: '#/who?id=claude-1',
  locks: '#/who?tab=locks&id=git%3Aweb',
  path: '#/who?path=src%2Flogin%2Fform.tsx',
  landings: '#/who?tab=landings',
  worktrees: '#/who?tab=worktrees&id=S-mail.1',
  history: '#/history?time=5m',
  trends: '#/history?tab=trends',
  knowledge: '#/knowledge',
  conflicts: '#/knowledge?tab=conflicts',
  duplicates: '#/knowledge?tab=duplicates',
  settings: '#/settings',
}
/** Only these views, where any are named: `npm run screenshots -- now tasks`. */
const ONLY = process.argv.slice(2)
/** In docs, a few of them; `SIZES=all` makes every view at every size. */
const SIZES = process.env['SIZES'] === 'all' ? [1440, 1024, 390] : [1440]
const PHONE = ['now', 'work', 'failed', 'agents', 'history']
/** Long enough for a timeline and for two minutes on the charts. */
const BUSTLE_MS = Number(process.env['BUSTLE_MS'] ?? 75_000)

const folder = mkdtempSync(join(tmpdir(), 'leasehold-scene-'))
const state = join(folder, 'state')
const env = {
  ...process.env,
  LEASEHOLD_DIR: state,
  LEASEHOLD_STORE: '',
  LEASEHOLD_TOKEN: '',
  LEASEHOLD_TRUST_CONFIG: 'yes',
}

async function main(): Promise<void> {
  mkdirSync(OUT, { recursive: true })
  const repo = shopRepo(join(folder, 'shop'))
  configure(state, shopConfig(repo))
  const server = spawn(process.execPath, [BIN, '--json', 'serve', '--port', '0'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const browser = await launch()
  try {
    const [said] = (await once(server.stdout, 'data')) as [Buffer]
    const { url } = JSON.parse(String(said)) as { url: string }
    const secret = readFileSync(join(state, 'admin.token'), 'utf8').trim()
    const asking = new Asking(url, secret)
    await playShop(asking)
    await playLine(asking, repo)
    VIEWS['landings'] = await hrefOfLanding(asking, 'S-sale')
    await play(asking, BUSTLE_MS)
    await foundAlike(asking)
    for (const theme of ['light', 'dark'] as const) await shoot(browser, url, secret, theme)
    asking.close()
  } finally {
    await browser.close()
    server.kill('SIGTERM')
    await once(server, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Notes are compared in the background, by a model that has to be loaded first. */
async function foundAlike(asking: Asking): Promise<void> {
  for (let tries = 0; tries < 60; tries += 1) {
    const { items } = await asking.ask('duplicate.list')
    if (items.length > 0) return
    // reason: there is nobody to tell us; without any, the view shows that there are none
    await new Promise((resolve) => void setTimeout(resolve, 500))
  }
}

async function shoot(browser: Browser, url: string, secret: string, theme: 'light' | 'dark') {
  const context = await browser.newContext({ ...LOOKS, colorScheme: theme })
  const page = await context.newPage()
  await page.goto(url)
  await page.getByLabel('Or paste a token').fill(secret)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Now', exact: true }).waitFor()
  // Away from what would say that it can be clicked.
  await page.mouse.move(0, 0)
  for (const width of SIZES) {
    for (const [name, hash] of Object.entries(VIEWS)) {
      if (ONLY.length > 0 && !ONLY.includes(name)) continue
      // More of it is below.
      const isLong = name === 'now' || name === 'trends'
      const height = isLong ? 1240 : width === 390 ? 844 : LOOKS.viewport.height
      await page.setViewportSize({ width, height })
      await show(page, hash)
      await keep(page, `${name}-${theme}${width === SIZES[0] ? '' : `-${width}`}`)
    }
  }
  if (theme === 'light') {
    await page.setViewportSize({ width: 390, height: 844 })
    for (const name of PHONE) {
      if (ONLY.length > 0 && !ONLY.includes(name)) continue
      await show(page, VIEWS[name]!)
      await keep(page, `${name}-phone`)
    }
  }
  await context.close()
}

async function show(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
  // What is shown is asked for at once; a moment later it stands still.
  await page.waitForLoadState('networkidle', { timeout: 1_000 }).catch(() => undefined)
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
  await page.waitForTimeout(700)
}

async function keep(page: Page, name: string): Promise<void> {
  const path = join(OUT, `${name}.png`)
  // A page full of text makes a large picture; half of it shows as much.
  const clip = { x: 0, y: 0, width: page.viewportSize()!.width, height: 600 }
  await page.screenshot({ path, ...(name.startsWith('history') && { clip }) })
  process.stdout.write(`${name}.png ${Math.round(statSync(path).size / 1024)} KB\n`)
}

await main()
