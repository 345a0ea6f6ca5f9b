import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import type { Json } from '../doors/serving.ts'
import { until } from '../support/processes.ts'
import { shareDashboard } from './served.ts'
import { signIn, visit } from './signed_in.ts'

/** After a random time of everything at once, the page says what the operations say. */

const STEPS = 250

const on = shareDashboard(() => ({
  slots: { max: 2 },
  agents: { quick: { command: ['/bin/sh', '-c', 'exit 0'] } },
  runs: { grace_seconds: 0 },
}))

/** The same numbers for the same seed. */
function dice(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
}

/** One random thing; most of them are refused now and then, which is a thing that happens too. */
async function happen(throwDice: (n: number) => number, i: number): Promise<void> {
  const agent = `agent-${throwDice(8)}`
  const name = `lock:${throwDice(6)}`
  const id = `T-${throwDice(40)}`
  const things: [string, object][] = [
    ['lock.acquire', { name, agent, ttl_seconds: 1 + throwDice(2) * 600 }],
    ['lock.acquire', { name, agent, ttl_seconds: 600 }],
    ['lock.release', { name, agent }],
    ['lock.force_release', { name, reason: 'by chance' }],
    ['task.create', { id: `T-${i % 40}`, title: `Task ${i}`, project: 'api', user: 'ada' }],
    ['task.claim', { id, agent }],
    ['task.status', { id, status: ['review', 'failed', 'done'][throwDice(3)], agent }],
    ['queue.add', { prompt: `Run ${i}`, project: 'web', user: ['ada', 'bob', 'cy'][throwDice(3)] }],
    ['queue.add', { prompt: `Never ${i}`, project: 'nowhere', user: 'dot' }],
    ['reserve.add', { paths: [`src/${throwDice(9)}/**`], project: 'web', agent }],
  ]
  const [operation, input] = things[throwDice(things.length)]!
  await on.daemon.post(operation, input)
}

test('every lane, count, cause and alert of the page is what the operations say', async () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
  console.info(`SEED=${seed}`)
  const throwDice = dice(seed)
  const { page } = await signIn(on, { expected: /Failed to load/ })
  // The page looks on at half of it, and is told the rest when it looks elsewhere.
  await visit(page, '#/timeline?time=5m')
  for (let i = 0; i < STEPS; i += 1) await happen(throwDice, i)
  await until('nothing runs', async () => {
    const { active } = await on.daemon.ok('queue.status')
    return active.slots_used === 0
  })
  await expectTimeline(page)
  await expectNow(page)
  await expectLists(page)
})

/** Reads a text of the page until it is what an operation says by then. */
async function agrees(what: string, said: () => Promise<unknown>, is: () => Promise<unknown>) {
  let both: unknown[] = []
  const look = async () => {
    both = [await said(), await is()]
    return JSON.stringify(both[0]) === JSON.stringify(both[1])
  }
  await until(what, look, 10_000).catch(() => expect(both[0], what).toEqual(both[1]))
}

async function expectTimeline(page: Page): Promise<void> {
  const drawn = async () => {
    const label = await page.locator('.timeline canvas').getAttribute('aria-label')
    return label?.match(/\d+/g)?.slice(0, 2).map(Number)
  }
  const known = async () => {
    const { items } = await on.daemon.ok('span.list', { since_seconds: 300, limit: 1000 })
    const ours = items.filter((span: Json) => !span.lock.startsWith('leasehold:'))
    return [new Set(ours.map((span: Json) => span.lock)).size, ours.length]
  }
  await agrees('lanes and spans', drawn, known)
}

async function expectNow(page: Page): Promise<void> {
  await visit(page, '#/now')
  const stuck = page.getByRole('region', { name: 'Stuck' })
  const shown = () => stuck.locator('.cause-says').allTextContents()
  // How long something lasts is another number a moment later.
  const still = (texts: string[]) =>
    texts.map((text) => text.replaceAll(/\d+ ?(?:s|m|min)\b/g, '…'))
  await agrees(
    'what is stuck',
    async () => still(await shown()).toSorted(),
    async () => {
      const { items } = await on.daemon.ok('stuck.get', { limit: 50 })
      return still(items.map((each: Json) => each.what)).toSorted()
    },
  )
  const alerts = page.getByRole('region', { name: 'Alerts' })
  await agrees(
    'alerts',
    async () => (await alerts.locator('.alert a').allTextContents()).length,
    async () => {
      const { items } = await on.daemon.ok('alert.list')
      const causes = new Set(
        (await on.daemon.ok('stuck.get', { limit: 50 })).items.map(({ id }: Json) => id),
      )
      return items.filter(({ id }: Json) => !causes.has(id)).length
    },
  )
  const { shares } = await on.daemon.ok('queue.status')
  for (const { user, fair_share } of shares) {
    const says = new RegExp(`^${user || 'no user'} got .*, fair ${Math.round(fair_share * 100)} %$`)
    await page.getByRole('img', { name: says }).waitFor()
  }
}

async function expectLists(page: Page): Promise<void> {
  await visit(page, '#/tasks?as=list')
  const says = (text: RegExp) => async () => {
    const found = text.exec(await page.locator('.page').innerText())
    return Number(found?.[1]?.replaceAll(',', ''))
  }
  const all = async (operation: string) =>
    (await on.daemon.ok(operation, { limit: 1000 })).items.length as number
  await agrees('tasks', says(/([\d,]+) tasks/), () => all('task.peek'))
  await visit(page, '#/locks')
  await agrees('locks', says(/([\d,]+) locks? held/), async () => {
    const { items } = await on.daemon.ok('lock.list', { limit: 1000 })
    return items.filter(({ name }: Json) => !name.startsWith('leasehold:')).length
  })
  await visit(page, '#/agents')
  await agrees('agents', says(/([\d,]+) agents? ever/), () => all('agent.list'))
  await visit(page, '#/events?type=lease')
  await agrees('events', says(/([\d,]+) events, all/), async () => {
    const more = page.getByRole('button', { name: 'Load older' })
    if ((await more.count()) > 0) await more.click()
    return (await on.daemon.ok('event.list', { type: 'lease', limit: 1000 })).items.length
  })
}
