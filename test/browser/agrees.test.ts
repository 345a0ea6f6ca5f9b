import type { Locator, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { STATUSES } from '../../src/core/rows.ts'
import type { Json } from '../doors/serving.ts'
import { Random } from '../simulation/random.ts'
import { ROUNDS, until } from '../support/processes.ts'
import { happen, playHour } from './hour.ts'
import { shareDashboard } from './served.ts'
import { signIn, steady, visit } from './signed_in.ts'

/** After a random hour, and a time that the page looks on at, it says what the operations say. */

const STEPS = 250 * ROUNDS

/** Of the lanes of one kind: each is asked of the server by its name. */
const LOOKED_AT = 6

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const random = new Random(SEED)

const on = shareDashboard(
  () => ({
    slots: { max: 2 },
    agents: { quick: { command: ['/bin/sh', '-c', 'exit 0'] } },
    runs: { grace_seconds: 0 },
  }),
  (place) => playHour(place.state, random),
)

test(
  'every lane, count, cause and share of the page is what the operations say',
  async () => {
    console.info(`SEED=${SEED}`)
    const spans = await whole('span.list', { since_seconds: 3600 })
    // Or the hour was not played.
    expect(spans.filter(({ to }) => Date.parse(to) < Date.now() - 1_800_000)).not.toEqual([])
    const { page } = await signIn(on, { expected: /Failed to load/ })
    // The page looks on at half of it, and is told the rest when it looks elsewhere.
    await visit(page, '#/history?time=6h')
    const world = {
      ask: (operation: string, input: object) => on.daemon.post(operation, input),
      wait: (name: string, agent: string) =>
        on.daemon.post('lock.acquire', { name, agent, wait_seconds: 2 }),
    }
    for (let i = 0; i < STEPS; i += 1) await happen(world, random, i)
    await until('nothing runs, and nobody waits', async () => {
      const { active } = await on.daemon.ok('queue.status')
      const { items } = await on.daemon.ok('lock.waiters')
      return active.slots_used === 0 && items.length === 0
    })
    await expectTimeline(page)
    await expectNow(page)
    await expectLists(page)
    await expectStats(page)
  },
  60_000 * ROUNDS,
)

/** Reads a text of the page until it is what an operation says by then. */
async function agrees(what: string, said: () => Promise<unknown>, is: () => Promise<unknown>) {
  let both: unknown[] = []
  const look = async () => {
    both = [await said(), await is()]
    return JSON.stringify(both[0]) === JSON.stringify(both[1])
  }
  await until(what, look, 10_000).catch(() => expect(both[0], what).toEqual(both[1]))
}

/** All that an operation lists, page by page. */
async function whole(operation: string, input: object = {}): Promise<Json[]> {
  const found: Json[] = []
  for (let after: string | null | undefined; after !== null;) {
    const asked = { limit: 1000, ...input, ...(after && { after }) }
    const { items, next } = await on.daemon.ok(operation, asked)
    found.push(...items)
    after = next
  }
  return found
}

const INBOX = new Set(['failed', 'review', 'quarantined'])
const ours = (name: string) => !name.startsWith('leasehold:')

const LANES: Record<string, (span: Json) => string | null> = {
  lock: ({ lock }) => lock,
  agent: ({ agent }) => agent,
  user: ({ lock, user }) => (lock.startsWith('user:') ? lock.slice(5) : user),
}

/** All lanes, then some by their names: so many spans, so many of which ended badly. */
async function expectTimeline(page: Page): Promise<void> {
  const drawn = async () => {
    const label = await page.locator('.timeline svg').getAttribute('aria-label')
    return label?.match(/\d+/g)?.map(Number)
  }
  for (const [by, laneOf] of Object.entries(LANES)) {
    const spansOf = async () => {
      const spans = await whole('span.list', { since_seconds: 21_600 })
      return spans.filter((span) => ours(span.lock) && laneOf(span) !== null)
    }
    const numbers = (spans: Json[]) => [
      new Set(spans.map(laneOf)).size,
      spans.length,
      spans.filter(({ ending }) => ending === 'expired' || ending === 'died').length,
    ]
    await visit(page, `#/history?time=6h&lanes=${by}`)
    await agrees(`lanes by ${by}`, drawn, async () => numbers(await spansOf()))
    const all = await spansOf()
    // There is no history of a user apart.
    const asked = { lock: 'lock', agent: 'by' }[by]
    if (asked === undefined) continue
    const names = [...new Set(all.map(laneOf))]
    for (const name of names.filter(() => random.chance(LOOKED_AT / names.length))) {
      const here = all.filter((span) => laneOf(span) === name)
      const of = `${asked}=${encodeURIComponent(name!)}`
      await visit(page, `#/history?time=6h&lanes=${by}&${of}`)
      await agrees(`lane ${name}`, drawn, async () => numbers(here))
    }
  }
}

async function expectNow(page: Page): Promise<void> {
  await visit(page, '#/now')
  const texts = async (found: Locator) => (await found.allTextContents()).map(steady).toSorted()
  const causes = async () => (await on.daemon.ok('stuck.get', { limit: 50 })).items as Json[]
  const stuck = page.getByRole('region', { name: 'Blocked now' })
  await agrees(
    'what is stuck',
    () => texts(stuck.locator('.cause-says')),
    async () => {
      // What is over, and only waits for a person to look, is counted apart.
      const blocking = (await causes()).filter(({ kind }) => !INBOX.has(kind))
      return blocking.map(({ what }) => steady(what)).toSorted()
    },
  )
  await agrees(
    'what waits for a person',
    async () => (await page.locator('.inbox a').allTextContents()).toSorted(),
    async () => {
      const counted = (kinds: string[], said: string) => async () => {
        const found = (await causes()).filter(({ kind }) => kinds.includes(kind))
        const n = found.reduce((sum, { tasks }) => sum + tasks, 0)
        const more = found.some(({ at_least }) => at_least) ? '+' : ''
        return n === 0 ? [] : [`${n}${more} ${said}`]
      }
      const disagree = (await whole('conflict.list')).length
      const notes = disagree === 1 ? '1 note disagrees' : `${disagree} notes disagree`
      const failed = await counted(['failed', 'quarantined'], 'failed')()
      const review = await counted(['review'], 'to review')()
      return [...failed, ...review, ...(disagree === 0 ? [] : [notes])].toSorted()
    },
  )
  await agrees('tiles', tilesOf(page), async () => {
    const { active, pending } = await on.daemon.ok('queue.status')
    const { tasks } = await on.daemon.ok('stats.get', { since_seconds: 3600 })
    return {
      Running: shown((await whole('task.peek', { status: 'in_progress' })).length),
      Slots: `${active.slots_used} / ${active.slots_max}`,
      Waiting: shown(pending.total),
      'Done in the last hour': shown(tasks.done),
    }
  })
  await visit(page, '#/settings')
  await expectShares(page)
}

const shown = (n: number) => n.toLocaleString('en-GB')

const tilesOf = (page: Page) => async () => {
  const names = await page.locator('.tile-name').allTextContents()
  const values = await page.locator('.tile-value').allTextContents()
  return Object.fromEntries(names.map((name, i) => [name, values[i]]))
}

/** What is fair for each user, and how many of its tasks run and wait. What it got grows. */
async function expectShares(page: Page): Promise<void> {
  const percent = (part: number) => `${Math.round(part * 100)} %`
  await agrees(
    'what is fair',
    async () => {
      const rows = await page.locator('.share').all()
      return Promise.all(
        rows.map(async (row) => {
          const label = await row.getByRole('img').getAttribute('aria-label')
          const more = await row.locator('.dim').first().textContent()
          return `${label?.replace(/ got .*,/, '')}, ${more}`
        }),
      )
    },
    async () => {
      const { shares } = await on.daemon.ok('queue.status')
      return shares.map(({ user, weight, running, pending, fair_share }: Json) => {
        const says = `weight ${weight} · ${running} running · ${pending} waiting`
        return `${user} fair ${percent(fair_share)}, ${says}`
      })
    },
  )
}

async function expectLists(page: Page): Promise<void> {
  await visit(page, '#/work?as=board')
  const counts = async () => {
    const heads = await page.locator('.column-head .number').allTextContents()
    return heads.map((text) => Number(text.replaceAll(',', '')))
  }
  await agrees('tasks of each status', counts, async () => {
    const tasks = await whole('task.peek')
    return STATUSES.map((status) => tasks.filter((task) => task.status === status).length)
  })
  await visit(page, '#/work?show=all')
  const says = (text: RegExp) => async () => {
    const found = text.exec(await page.locator('.page').innerText())
    return Number(found?.[1]?.replaceAll(',', ''))
  }
  const all = async (operation: string) => (await whole(operation)).length
  await agrees('tasks', says(/([\d,]+) tasks/), () => all('task.peek'))
  await visit(page, '#/who?tab=locks')
  await agrees('locks', says(/([\d,]+) locks? held/), async () => {
    return (await whole('lock.list')).filter(({ name }) => ours(name)).length
  })
  await visit(page, '#/who?show=all')
  await agrees('agents', says(/([\d,]+) agents? ever/), () => all('agent.list'))
  await visit(page, '#/history?time=6h&type=lease')
  await agrees('events', says(/([\d,]+) events, all/), async () => {
    const more = page.getByRole('button', { name: 'Load older' })
    if ((await more.count()) > 0) await more.click()
    return (await whole('event.list', { type: 'lease', since_seconds: 21_600 })).length
  })
}

async function expectStats(page: Page): Promise<void> {
  await visit(page, '#/history?tab=trends')
  await agrees('stats', tilesOf(page), async () => {
    const { locks, tasks, stale_writes } = await on.daemon.ok('stats.get', { since_seconds: 3600 })
    return {
      Acquisitions: shown(locks.acquisitions),
      Expired: shown(locks.expired),
      Died: shown(locks.died),
      'Stale writes refused': shown(stale_writes),
      'Tasks done': shown(tasks.done),
    }
  })
}
