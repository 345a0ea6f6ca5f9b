import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Reply } from '../doors/serving.ts'
import { type Host, hosts } from '../e2e/postgres_hosts.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { ROUNDS, until } from '../support/processes.ts'

const TTL_SECONDS = 4
const TTL_MS = TTL_SECONDS * 1000
/**
 * All longer than a lease here. The longer nothing came through, the longer TCP waits before it
 * tries again: after 20 s, for another 5; after 26 s, for another 25.
 */
const APART_MS = ROUNDS === 1 ? [9_000] : [6_000, 9_000, 13_000, 20_000, 30_000, 45_000]
/** By then a daemon has said that it does not reach its database. */
const SAID_MS = 19_000
const BACK_MS = 5_000
/** A writer that is cut off in mid-transaction holds up the others for 3 s. */
const HELD_UP_MS = 5_000
/** Times are taken on one machine, and the database rounds them. */
const ROUNDED_MS = 5
const LOCKS = ['red', 'green', 'blue']

/** What was asked under which fence, when, and what came of it. */
interface Deed {
  host: string
  agent: string
  lock: string
  what: 'acquire' | 'renew' | 'release'
  fence: number
  code: string
  sent_ms: number
  told_ms: number
}

/** Everything that agents did, in a file that is only ever added to. */
class Journal {
  private readonly path = join(temporaryFolder(), 'deeds')

  async note(
    host: Host,
    deed: Pick<Deed, 'agent' | 'lock' | 'what'> & { fence?: number },
  ): Promise<Deed> {
    const { agent, lock, what, fence } = deed
    const sent_ms = performance.now()
    const input =
      what === 'acquire'
        ? { names: [lock], ttl_seconds: TTL_SECONDS, wait_seconds: 2 }
        : { name: lock, fence }
    const reply = await host.daemon.post(`lock.${what}`, { ...input, agent })
    const told: Deed = {
      host: host.name,
      agent,
      lock,
      what,
      fence: fence ?? reply.json.fence ?? 0,
      code: codeOf(reply),
      sent_ms,
      told_ms: performance.now(),
    }
    appendFileSync(this.path, `${JSON.stringify(told)}\n`)
    return told
  }

  deeds(): Deed[] {
    const lines = readFileSync(this.path, 'utf8').split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line) as Deed)
  }
}

const codeOf = ({ status, json }: Reply) => (status === 200 ? 'ok' : (json.error.code as string))

function pause(ms: number): Promise<void> {
  // reason: agents work for a while under a lease; that while is what others must not overlap.
  return new Promise((resolve) => void setTimeout(resolve, ms))
}

/** Agents that take locks in turn, work under them, and give them back, until told to end. */
class Crew {
  private readonly done: Promise<void>[]
  private isOver = false

  constructor(
    all: Host[],
    private readonly journal: Journal,
  ) {
    this.done = all.flatMap((host) => [0, 1].map((i) => this.work(host, `${host.name}-${i}`)))
    // When the test has failed, hosts end before these do, and nobody looks at them.
    for (const each of this.done) each.catch(() => undefined)
  }

  private async work(host: Host, agent: string): Promise<void> {
    for (let i = 0; !this.isOver; i += 1) {
      const lock = LOCKS[i % LOCKS.length]!
      const { fence, code } = await this.journal.note(host, { agent, lock, what: 'acquire' })
      if (code === 'ok') await this.hold(host, { agent, lock, fence })
      else if (code === 'unavailable') await pause(100)
    }
  }

  private async hold(
    host: Host,
    lease: { agent: string; lock: string; fence: number },
  ): Promise<void> {
    for (let i = 0; i < 3; i += 1) {
      await pause(20 + Math.random() * 60)
      await this.journal.note(host, { ...lease, what: 'renew' })
    }
    await this.journal.note(host, { ...lease, what: 'release' })
  }

  stop(): Promise<unknown> {
    this.isOver = true
    return Promise.all(this.done)
  }
}

interface Held {
  fence: number
  from_ms: number
  /** Until then the holder may believe that it has the lock, by what it was told. */
  until_ms: number
  last_ok_ms: number
}

function heldOf(deeds: Deed[]): Held[] {
  const fences = [...new Set(deeds.filter(({ code }) => code === 'ok').map((deed) => deed.fence))]
  return fences.map((fence) => {
    const ok = deeds.filter((deed) => deed.fence === fence && deed.code === 'ok')
    const kept = ok.filter(({ what }) => what !== 'release').map(({ sent_ms }) => sent_ms)
    const released = deeds.find((deed) => deed.fence === fence && deed.what === 'release')
    return {
      fence,
      from_ms: ok.find(({ what }) => what === 'acquire')!.told_ms,
      until_ms: Math.min(Math.max(...kept) + TTL_MS, released?.sent_ms ?? Infinity),
      last_ok_ms: Math.max(...ok.map(({ sent_ms }) => sent_ms)),
    }
  })
}

/** Nobody had a lock, or was allowed anything under it, while somebody else had it. */
function expectNoOverlap(deeds: Deed[]): number {
  let turns = 0
  for (const lock of new Set(deeds.map((deed) => deed.lock))) {
    const held = heldOf(deeds.filter((deed) => deed.lock === lock))
    const inOrder = held.toSorted((a, b) => a.fence - b.fence)
    for (const [i, next] of inOrder.slice(1).entries()) {
      const before = inOrder[i]!
      const gap_ms = next.from_ms - Math.max(before.until_ms, before.last_ok_ms)
      expect({ lock, before, next, ok: gap_ms >= -ROUNDED_MS }).toMatchObject({ ok: true })
    }
    turns += held.length
  }
  return turns
}

/** The longest time without an answer of success on these hosts between two moments. */
function longestSilence(deeds: Deed[], from_ms: number, to_ms: number): number {
  const told = deeds.filter(({ code, told_ms }) => code === 'ok' && told_ms > from_ms)
  const times = told.map(({ told_ms }) => told_ms).filter((ms) => ms < to_ms)
  const all = [from_ms, ...times.toSorted((a, b) => a - b), to_ms]
  return Math.max(...all.slice(1).map((ms, i) => ms - all[i]!))
}

describe('three hosts on one database, one of them cut off for longer than a TTL', () => {
  test.each(APART_MS)(
    'by %i ms: its holders are fenced off, nobody overlaps, all go on, and it comes back',
    async (apart_ms) => {
      const all = (await hosts('near', 'other', 'far')) as [Host, Host, Host]
      for (const host of all) await host.serve()
      const [near, , far] = all
      const journal = new Journal()
      const crew = new Crew(all, journal)
      const takes = (host: Host, lock: string) =>
        journal.note(host, { agent: host.name, lock, what: 'acquire' })
      const [taken, left] = [await takes(far, 'taken'), await takes(far, 'left')]
      await until('all have worked', () => {
        return new Set(journal.deeds().map(({ agent }) => agent)).size >= 7
      })

      far.cut()
      const cut_ms = performance.now()
      const late = journal.note(far, { ...taken, what: 'renew' })
      const next = await until('the lock of a holder that is cut off is free', async () => {
        const deed = await takes(near, 'taken')
        return deed.code === 'ok' && deed
      })
      // Granted at some time between its asking and its being told.
      expect(next.told_ms - taken.sent_ms).toBeGreaterThan(TTL_MS - ROUNDED_MS)
      expect(next.told_ms - cut_ms).toBeLessThan(TTL_MS + HELD_UP_MS + 1_000)
      expect((await near.daemon.ok('lock.status', { name: 'taken' })).fence).toBe(next.fence)
      await until('it was cut off for long enough', () => performance.now() > cut_ms + apart_ms)

      far.heal()
      const heal_ms = performance.now()
      const back_ms = (await backAt(far)) - heal_ms
      for (const lease of [taken, left]) {
        const what = 'renew' as const
        expect(EXPECTED_LATE).toContain((await journal.note(far, { ...lease, what })).code)
      }
      const said_ms = (await late).told_ms - cut_ms
      const { code } = await late
      await until('its agents work again', () => {
        const since = journal.deeds().filter(({ sent_ms }) => sent_ms > heal_ms)
        return since.filter(isGrant).some(({ host }) => host === 'far')
      })
      await crew.stop()
      const deeds = journal.deeds()
      const turns = expectNoOverlap(deeds)
      const elsewhere = deeds.filter(({ host }) => host !== 'far')
      const silence_ms = longestSilence(elsewhere, cut_ms, heal_ms)
      const [back, said, silence] = [back_ms, said_ms, silence_ms].map(Math.round)
      process.stderr.write(
        `${apart_ms} ms apart: back in ${back} ms, "${code}" said after ${said} ms, ` +
          `others silent for ${silence} ms, ${turns} turns\n`,
      )
      expect(deeds.filter((deed) => !EXPECTED.has(deed.code))).toEqual([])
      expect(silence_ms).toBeLessThan(HELD_UP_MS)
      expect(back_ms).toBeLessThan(BACK_MS)
      expect(said_ms).toBeLessThan(Math.max(SAID_MS, apart_ms))
      expect(['unavailable', ...EXPECTED_LATE]).toContain(code)
    },
    120_000,
  )
})

const EXPECTED_LATE = ['fence_stale', 'lease_expired']
const EXPECTED = new Set(['ok', 'held', 'unavailable', ...EXPECTED_LATE])

const isGrant = ({ what, code }: Deed) => what === 'acquire' && code === 'ok'

/** When a host has written and read again. Asks that got stuck on the way are not waited for. */
function backAt(host: Host): Promise<number> {
  return until(`${host.name} is back`, async () => {
    const sending = { signal: AbortSignal.timeout(1_000) }
    const names = [`back ${Math.random()}`]
    try {
      const wrote = await host.daemon.post('lock.acquire', { names, agent: host.name }, sending)
      const read = await host.daemon.post('lock.list', {}, sending)
      return wrote.status === 200 && read.status === 200 && performance.now()
    } catch {
      return false
    }
  })
}
