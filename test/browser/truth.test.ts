import { readFileSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { finish, startDaemon } from '../doors/serving.ts'
import { Endpoint } from '../memory/endpoint.ts'
import { Sandbox, until } from '../support/processes.ts'
import { shareDashboard } from './served.ts'
import { expectSeen, linkFrom, openWindow, signIn, visit } from './signed_in.ts'

/** The page never says what is not so: each of these it has said. */

const AWAY = { expected: /ERR_|Failed to load/ }
const LINES = 12_000

/** Says a lot: a first line, a bar that writes over itself, colours, and a last line. */
const TALKER = `
echo the very first line
for part in 10 40 70 100; do printf '\\rloading %s %%' $part; done; echo
printf '\\033[31mred alert\\033[0m and \\033[1;32mgreen\\033[0m\\n'
seq -f 'line number %.0f of a long story' 1 ${LINES}
echo the very last line
`

const on = shareDashboard(() => ({
  agents: {
    quick: { command: ['/bin/sh', '-c', 'exit 0'] },
    talker: { command: ['/bin/sh', '-c', TALKER] },
  },
  runs: { grace_seconds: 0 },
}))

/** Enqueues a task and waits until its run is over. */
async function runTask(id: string, more: object = {}): Promise<void> {
  await on.daemon.ok('queue.add', { id, prompt: id, project: 'web', user: id, ...more })
  await until(`${id} has run`, async () => {
    return (await on.daemon.ok('task.get', { id })).status === 'done'
  })
}

test('a run that is over is one span of time, as long as the store says', async () => {
  await runTask('over')
  const { page } = await signIn(on)
  await visit(page, '#/history?time=5m&task=over')
  await expectSeen(page.getByRole('img', { name: /^1 lanes, 1 spans of time, 0 of them/ }))
  const { items } = await on.daemon.ok('span.list', { lock: 'task:over', since_seconds: 300 })
  expect(items).toEqual([expect.objectContaining({ kind: 'held', ending: 'done' })])
  // And what ends while somebody looks on.
  await visit(page, '#/history?time=5m&task=seen')
  await runTask('seen')
  await expectSeen(page.getByRole('img', { name: /^1 lanes, 1 spans of time, 0 of them/ }))
})

describe('what needs a person', () => {
  test('a task that nobody will ever run is said first, with its cause', async () => {
    await on.daemon.ok('queue.add', { id: 'lonely', prompt: 'x', project: 'nowhere', user: 'ada' })
    const { page } = await signIn(on)
    const stuck = page.getByRole('region', { name: 'Blocked now' })
    await expectSeen(stuck.getByText('nowhere'))
    expect(await stuck.getByText('Nothing needs a person').count()).toBe(0)
    const { items } = await on.daemon.ok('stuck.get')
    const cause = items.find((each: { what: string }) => each.what.includes('nowhere'))
    await expectSeen(stuck.getByText(cause.what))
    await until('the tab says so', async () => (await page.title()).startsWith('Degraded · Now'))
    await visit(page, '#/who?tab=locks')
    const state = page.getByRole('link', { name: 'Degraded' })
    await expectSeen(state)
    // Why is said where something can be done about it.
    expect(await page.getByText(cause.what).count()).toBe(0)
    await on.daemon.ok('queue.cancel', { id: 'lonely' })
    await state.waitFor({ state: 'detached' })
    await until('the tab says so', async () => (await page.title()).startsWith('Who has what'))
  })
})

test('who waits is told below the root, and who waits for them below that', async () => {
  await on.daemon.ok('lock.acquire', { name: 'root', agent: 'first' })
  await on.daemon.ok('lock.acquire', { name: 'branch', agent: 'second' })
  const waits = [
    { name: 'root', agent: 'second' },
    { name: 'branch', agent: 'third' },
  ].map((each) => on.daemon.post('lock.acquire', { ...each, wait_seconds: 60 }))
  const { page } = await signIn(on)
  const blocked = page.getByRole('region', { name: 'Blocked now' })
  const cause = blocked.locator('.cause', { hasText: 'first holds root' })
  await expectSeen(cause.locator('li', { hasText: 'second waits for root' }))
  await expectSeen(cause.locator('li li', { hasText: 'third waits for branch' }))
  await on.daemon.ok('lock.release', { name: 'root', agent: 'first' })
  await on.daemon.ok('lock.release', { name: 'branch', agent: 'second' })
  await Promise.all(waits)
})

const EVERYWHERE = [
  ...['now', 'work', 'work?as=board', 'work?id=first', 'history', 'history?tab=trends', 'settings'],
  ...['who', 'who?id=ada', 'who?tab=locks', 'who?tab=locks&id=kept', 'who?path=a.ts'],
  ...['who?tab=landings', 'who?tab=worktrees'],
  ...['knowledge', 'knowledge?tab=conflicts', 'knowledge?tab=duplicates'],
]

test('what has not been answered yet is not said to be nothing', async () => {
  const { page } = await signIn(on)
  await page.route('**/v1/*.*', () => undefined)
  await page.reload()
  for (const view of EVERYWHERE) {
    await visit(page, `#/${view}`)
    await expectSeen(page.locator('main').getByText('Loading…'))
    const said = await page.locator('main').innerText()
    expect({ view, said }).toEqual({
      view,
      said: expect.not.stringMatching(/\b(?:no|none|nothing|nobody|free|open|0)\b/i),
    })
  }
  await expectSeen(page.getByText('Looking…'))
})

test('how long ago something was is told by the clock of the server', async () => {
  await on.daemon.ok('task.create', { id: 'young', title: 'Just made' })
  const { page, context } = await openWindow(on)
  await context.addInitScript(`{
    const real = Date.now
    Date.now = () => real() + 7_200_000
  }`)
  await page.goto(await linkFrom(on.place))
  await visit(page, '#/work?q=young')
  const row = page.locator('.row', { hasText: 'Just made' })
  await expectSeen(row.getByText(/^\d\d?s$/))
})

describe('a server that is away', () => {
  test('a view opened meanwhile shows itself when the server is back', async () => {
    await on.daemon.ok('lock.acquire', { name: 'kept', agent: 'ada' })
    const { page } = await signIn(on, AWAY)
    const { port } = on.daemon
    await on.daemon.kill()
    await expectSeen(page.getByText('The server does not answer').first())
    await visit(page, '#/who')
    await expectSeen(page.getByText('Start it (leasehold up)'))
    on.daemon = await startDaemon(on.place, { flags: ['--port', String(port)] })
    await expectSeen(page.getByText('Connected again'))
    await expectSeen(page.getByRole('link', { name: 'ada', exact: true }))
    await page.getByText('Start it (leasehold up)').waitFor({ state: 'detached' })
  })

  test('stats that could not be loaded are loaded again', async () => {
    const { page } = await signIn(on, AWAY)
    await visit(page, '#/work')
    await page.route('**/v1/stats.get', (route) => route.abort(), { times: 1 })
    await visit(page, '#/history?tab=trends')
    await expectSeen(page.getByText('Acquisitions'))
    await expectSeen(page.getByText('Most contended locks'))
  })

  test('one that hangs is said to within five seconds, and what was sent stays sent', async () => {
    await on.daemon.ok('lock.acquire', { name: 'stuck', agent: 'sleepy' })
    const { page } = await signIn(on)
    await visit(page, '#/who?tab=locks')
    await page.getByRole('button', { name: 'Force-release stuck' }).click()
    process.kill(on.daemon.running.pid, 'SIGSTOP')
    const hung_ms = performance.now()
    onTestFinished(() => void process.kill(on.daemon.running.pid, 'SIGCONT'))
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Force-release' }).click()
    await expectSeen(dialog.getByRole('button', { name: 'Sending…' }))
    await expectSeen(dialog.getByText('the server has not answered yet'))
    await page.keyboard.press('Escape')
    await expectSeen(page.getByText('was sent; no answer has come yet'))
    await expectSeen(page.getByRole('alert').getByText('says nothing'))
    expect(performance.now() - hung_ms).toBeLessThan(5_500)
    expect(await page.title()).toMatch(/^Silent · /)
    process.kill(on.daemon.running.pid, 'SIGCONT')
    await expectSeen(page.getByText('stuck was released'))
    await page.getByRole('alert').getByText('says nothing').waitFor({ state: 'detached' })
  })
})

test('tabs keep their height over any content', async () => {
  for (let i = 0; i < 40; i += 1) {
    await on.daemon.ok('reserve.add', { paths: [`src/${i}/**`], project: 'tall', agent: `a${i}` })
  }
  const { page } = await signIn(on)
  await visit(page, '#/who?tab=locks&show=files')
  await expectSeen(page.getByText('path:tall:src/0/**'))
  const box = await page.getByRole('tablist').first().boundingBox()
  expect(box!.height).toBeGreaterThan(30)
})

test('notes that are alike are shown whole, as they are compared', async () => {
  const other = new Sandbox()
  onTestFinished(() => other.close())
  const endpoint = await Endpoint.start()
  await other.ok(['task', 'add', 'Here from the start'])
  const config = JSON.stringify(endpoint.config())
  writeFileSync(`${other.state}/config.json`, config, { mode: 0o600 })
  const served = await startDaemon(other, { env: { LEASEHOLD_EMBEDDINGS: '' } })
  onTestFinished(() => finish(other))
  const long = 'The build cache is cleared every night by the job on the server. '.repeat(4)
  await served.ok('memory.put', { key: 'cache.a', content: `${long}At 02:00.`, agent: 'ada' })
  await served.ok('memory.put', { key: 'cache.b', content: `${long}At 05:30.`, agent: 'bob' })
  await until('they are found', async () => (await served.ok('duplicate.list')).items.length > 0)
  const { page } = await signIn({ browser: on.browser, place: other })
  await visit(page, '#/knowledge?tab=duplicates')
  await expectSeen(page.locator('mark', { hasText: '02:00' }))
  await expectSeen(page.locator('mark', { hasText: '05:30' }))
})

describe('events', () => {
  beforeAll(async () => {
    await on.daemon.ok('lock.acquire', { name: 'rare', agent: 'early bird' })
    for (let i = 0; i < 150; i += 1) {
      const { fence } = await on.daemon.ok('lock.acquire', { name: 'common', agent: 'busy' })
      await on.daemon.ok('lock.release', { name: 'common', agent: 'busy', fence })
    }
  })

  test('what is long past is found, and all of it can be loaded', async () => {
    const { page } = await signIn(on)
    await visit(page, '#/history?by=early%20bird')
    await expectSeen(page.getByText('rare'))
    await visit(page, '#/history')
    await page.getByLabel('Lock', { exact: true }).fill('common')
    await expectSeen(page.getByText('there may be older ones'))
    expect(page.url()).toContain('lock=common')
    await page.getByRole('button', { name: 'Load older' }).click()
    await expectSeen(page.getByText('300 events, all that fit'))
    await on.daemon.ok('lock.acquire', { name: 'common', agent: 'busy' })
    await expectSeen(page.getByText('301 events, all that fit'))
  })
})

async function download(page: Page, button: string): Promise<string> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ])
  return readFileSync(await file.path(), 'utf8')
}

test('those who died are told apart from leases that ran out, with values and units', async () => {
  const { page } = await signIn(on)
  await visit(page, '#/history?tab=trends')
  await expectSeen(page.getByText('Died', { exact: true }))
  await expectSeen(page.getByText('Minute by minute'))
  const { hold } = await on.daemon.ok('stats.get', { since_seconds: 3600 })
  expect(hold.p50_seconds).toBeLessThan(1)
  await expectSeen(page.getByRole('cell', { name: /^\d+ ms$/ }))
})

test('a log is read from its first line, as a terminal shows it', async () => {
  await runTask('chatty', { agent_command: 'talker' })
  const { page } = await signIn(on)
  await visit(page, '#/work?id=chatty')
  const log = page.getByRole('group', { name: 'Output of run chatty.1' })
  await expectSeen(log.getByText('the very last line'))
  await expectSeen(page.getByText(`${(LINES + 4).toLocaleString('en-GB')} lines`))
  await page.evaluate(`document.querySelector('.log .virtual').scrollTo({ top: 0 })`)
  await expectSeen(log.getByText('the very first line'))
  expect(await page.getByLabel('Follow').isChecked()).toBe(false)
  await expectSeen(log.getByText('loading 100 %', { exact: true }))
  expect(await log.getByText('loading 40').count()).toBe(0)
  expect(await log.getByText('red alert', { exact: true }).getAttribute('class')).toContain('fg1')
  await page.getByLabel('Find in output').fill('line number 7777 ')
  await page.keyboard.press('Enter')
  await expectSeen(log.getByText('line number 7777 of'))
  await expectSeen(page.getByText('1 of 1'))
  const whole = await download(page, 'Download')
  expect(whole.startsWith('the very first line\n')).toBe(true)
  expect(whole.endsWith('the very last line\n')).toBe(true)
})
