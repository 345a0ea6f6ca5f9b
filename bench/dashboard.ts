import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launch, LOOKS } from '../test/browser/browser.ts'
import { type Server, startServer } from './http.ts'
import { median, printTable, progress } from './report.ts'

const TASKS = 10_000
const LOCKS = 1_000
const RATE = 100
const AGENTS = 100
/** A third of the default TTL, as our own clients renew. */
const BEAT_MS = 100_000
const VIEWS = ['now', 'work', 'who?tab=locks', 'history', 'history?tab=trends']

export interface Dashboard {
  first_view_ms: number
  all_tasks_ms: number
  page_cores: Record<string, number>
  events_per_second: number
  daemon_cores: { alone: number; watched: number }
}

/** What the dashboard costs: a first look, a busy store, and an idle one that three watch. */
export async function measureDashboard(quick: boolean): Promise<Dashboard> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const started = await startServer(folder, join(folder, 'leasehold.db'))
  // An admin, who may speak for any agent.
  const secret = readFileSync(join(folder, 'admin.token'), 'utf8').trim()
  const server = { ...started, secret }
  const browser = await launch()
  try {
    const alone = await daemonCores(server, quick ? 5_000 : 20_000)
    progress(`creating ${TASKS} tasks and ${LOCKS} locks`)
    await fill(server)
    const looks = await firstLooks(browser, server, quick ? 1 : 3)
    const busy = await busyPages(browser, server, quick ? 3_000 : 8_000)
    const watched = await idleWatched(browser, server, quick ? 10_000 : 30_000)
    return { ...looks, ...busy, daemon_cores: { alone, watched } }
  } finally {
    await browser.close()
    server.child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function ask({ url, secret }: Server, name: string, input: object): Promise<unknown> {
  const response = await fetch(`${url}/v1/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(input),
  })
  if (!response.ok) throw new Error(await response.text())
  return response.json()
}

/** Many at a time: they share commits. */
async function many(n: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const one = async () => {
    for (let i = next; i < n; i = next) {
      next += 1
      await work(i)
    }
  }
  await Promise.all(Array.from({ length: 64 }, one))
}

async function fill(server: Server): Promise<void> {
  await many(TASKS, (i) => {
    const title = `Task number ${i} with a title of an ordinary length`
    return ask(server, 'task.create', { id: `t${i}`, title, body: 'x'.repeat(500), project: 'web' })
  })
  await many(LOCKS, (i) =>
    ask(server, 'lock.acquire', { name: `held:${i}`, agent: `agent-${i % 50}`, ttl_seconds: 3600 }),
  )
  await many(20, (i) =>
    ask(server, 'task.claim', { id: `t${i}`, agent: 'runner', ttl_seconds: 3600 }),
  )
}

async function open(browser: Browser, { url, secret }: Server): Promise<Page> {
  const context = await browser.newContext(LOOKS)
  const page = await context.newPage()
  await page.goto(url)
  await page.getByLabel('Or paste a token').fill(secret)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

/** From the request to the tasks that run, in a browser that has nothing kept; and to all tasks. */
async function firstLooks(browser: Browser, server: Server, rounds: number) {
  const first: number[] = []
  const all: number[] = []
  for (let i = 0; i < rounds; i += 1) {
    const page = await open(browser, server)
    const client = await page.context().newCDPSession(page)
    await client.send('Network.setCacheDisabled', { cacheDisabled: true })
    await page.reload({ waitUntil: 'commit' })
    await page.locator('.running').nth(19).waitFor()
    first.push(Number(await page.evaluate('performance.now()')))
    const begun = Number(
      await page.evaluate('location.hash = "#/work?show=all", performance.now()'),
    )
    await page.getByText(`${TASKS.toLocaleString('en-GB')} tasks`, { exact: true }).waitFor()
    all.push(Number(await page.evaluate('performance.now()')) - begun)
    await page.context().close()
  }
  return { first_view_ms: median(first), all_tasks_ms: median(all) }
}

/** How much of a core the page takes while the store changes so many times a second. */
async function busyPages(browser: Browser, server: Server, ms: number) {
  const cores: Record<string, number> = {}
  const page = await open(browser, server)
  const [before, from] = [await eventsIn(server), performance.now()]
  let i = 0
  // Two events each: granted and released. Every tenth is about a task, with a status to follow.
  const timer = setInterval(() => {
    // By the clock, not by the tick: a busy machine ticks late.
    const due = ((performance.now() - from) / 1000) * (RATE / 2)
    while (i < due) void happen(server, (i += 1)).catch(() => undefined)
  }, 20)
  try {
    for (const view of VIEWS) {
      await page.evaluate(`location.hash = '#/${view}'`)
      await page.waitForTimeout(1_500)
      progress(`${view} at ${RATE} events a second`)
      cores[view] = await rendererCores(browser, ms)
    }
  } finally {
    clearInterval(timer)
    await page.context().close()
  }
  const seconds = (performance.now() - from) / 1000
  return { page_cores: cores, events_per_second: ((await eventsIn(server)) - before) / seconds }
}

async function eventsIn(server: Server): Promise<number> {
  const { items } = (await ask(server, 'event.list', { limit: 1 })) as {
    items: { position: number }[]
  }
  return items[0]?.position ?? 0
}

async function happen(server: Server, i: number): Promise<unknown> {
  const agent = `busy-${i % 40}`
  if (i % 10 === 0) {
    const id = `t${100 + (i % 9_000)}`
    await ask(server, 'task.claim', { id, agent })
    return ask(server, 'task.status', { id, status: 'review', agent })
  }
  const name = `busy:${i % 200}`
  await ask(server, 'lock.acquire', { name, agent, takeover: true })
  return ask(server, 'lock.release', { name, agent })
}

interface ProcessInfo {
  processInfo: { type: string; cpuTime: number }[]
}

async function rendererCores(browser: Browser, ms: number): Promise<number> {
  const session = await browser.newBrowserCDPSession()
  const spent = async () => {
    const { processInfo } = (await session.send('SystemInfo.getProcessInfo')) as ProcessInfo
    const pages = processInfo.filter(({ type }) => type === 'renderer')
    return pages.reduce((sum, { cpuTime }) => sum + cpuTime, 0)
  }
  const [before, from] = [await spent(), performance.now()]
  await new Promise((resolve) => void setTimeout(resolve, ms))
  return ((await spent()) - before) / ((performance.now() - from) / 1000)
}

/** Three pages look on while a hundred agents keep what they hold. */
async function idleWatched(browser: Browser, server: Server, ms: number): Promise<number> {
  await many(AGENTS, (i) => ask(server, 'lock.acquire', { name: `beat:${i}`, agent: `beat-${i}` }))
  const pages = await Promise.all([1, 2, 3].map(() => open(browser, server)))
  for (const [i, page] of pages.entries()) {
    await page.evaluate(`location.hash = '#/${['now', 'who?tab=locks', 'who'][i]}'`)
  }
  let i = 0
  const beat = () => ask(server, 'agent.heartbeat', { agent: `beat-${(i += 1) % AGENTS}` })
  const timer = setInterval(() => void beat().catch(() => undefined), BEAT_MS / AGENTS)
  try {
    await pages[0]!.waitForTimeout(3_000)
    progress('three pages and a hundred agents')
    return await daemonCores(server, ms)
  } finally {
    clearInterval(timer)
    for (const page of pages) await page.context().close()
  }
}

const TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

async function daemonCores({ child }: Server, ms: number): Promise<number> {
  const spent = () => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS
  }
  const [before, from] = [spent(), performance.now()]
  await new Promise((resolve) => void setTimeout(resolve, ms))
  return (spent() - before) / ((performance.now() - from) / 1000)
}

export function printDashboard({ first_view_ms, all_tasks_ms, ...cores }: Dashboard): void {
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`
  const { page_cores, daemon_cores, events_per_second } = cores
  const rate = Math.round(events_per_second)
  printTable([
    ['dashboard', 'measured', 'limit'],
    [`first view, ${TASKS} tasks`, `${Math.round(first_view_ms)} ms`, '1000 ms'],
    ['all tasks on the board', `${Math.round(all_tasks_ms)} ms`, ''],
    ...Object.entries(page_cores).map(([view, part]) => [
      `${view} at ${rate} events/s, of a core`,
      percent(part),
      '30 %',
    ]),
    ['daemon idle, of a core', percent(daemon_cores.alone), ''],
    ['and 3 pages, 100 agents', percent(daemon_cores.watched), '1 %'],
  ])
}
