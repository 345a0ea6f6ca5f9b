import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, type TestContext } from 'vitest'
import { Dispatching, type Line, most, userOf } from '../support/dispatching.ts'
import type { Json } from '../doors/serving.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { because, until } from '../support/processes.ts'
import { type Host, hosts, isApart } from './postgres_hosts.ts'

const TTL_MS = 6_000
/** What a host that cannot be asked has beyond the TTL, to stop its own commands. */
const GRACE_MS = 10_000
/** For a sweep, a claim, and the start of a runner on a busy machine. */
const START_MS = 6_000
const SAY = `say() {
  echo "$1 $LEASEHOLD_TASK $LEASEHOLD_RUN $LEASEHOLD_FENCE $(hostname)" >> "$OUT/log"
}
trap 'say end; exit 143' TERM
say start
`
const HELD = `${SAY} while [ ! -e "$OUT/go" ]; do sleep 0.05; done; say end`

interface Seen extends Line {
  host: string
  at_ms: number
}

/** What agents did on all hosts, in one file, in the order in which it happened. */
class Agents {
  readonly out = temporaryFolder()
  private readonly path = join(this.out, 'log')
  /** When lines were first seen here. */
  private readonly seen_ms: number[] = []

  lines(what?: string): Seen[] {
    const text = existsSync(this.path) ? readFileSync(this.path, 'utf8') : ''
    const all = text.split('\n').filter(Boolean)
    const found = all.map((line, i) => {
      const [said, task, run, fence, host] = line.split(' ') as [
        string,
        string,
        string,
        ...string[],
      ]
      const at_ms = (this.seen_ms[i] ??= performance.now())
      return { what: said, task, run, fence: Number(fence), host: host!, pid: 0, at_ms }
    })
    return what === undefined ? found : found.filter((line) => line.what === what)
  }

  /** What runs: begun and not ended. */
  running(host: string): Seen[] {
    const ended = new Set(this.lines('end').map(({ run }) => run))
    return this.lines('start').filter((line) => line.host === host && !ended.has(line.run))
  }

  /** Ends what a host that is off cannot say any more. */
  end(lines: Seen[]): void {
    for (const { task, run, fence, host } of lines) {
      appendFileSync(this.path, `end ${task} ${run} ${fence} ${host}\n`)
    }
  }

  seen(what: string, count: number): Promise<Seen[]> {
    const look = () => this.lines(what).length >= count && this.lines(what)
    return until(`${count} × ${what}`, look, 60_000)
  }

  go(): void {
    writeFileSync(join(this.out, 'go'), '')
  }
}

interface Setting {
  slots: number
  limit: number
  body: string
  ttl_ms?: number
}

/** Where nobody dies, the TTL is longer than a runner takes to begin on a busy machine. */
function configOf({ slots, limit, body, ttl_ms = 60_000 }: Setting, { out }: Agents): Json {
  return {
    slots: { max: slots },
    runs: { ttl_seconds: ttl_ms / 1000, grace_seconds: 1 },
    projects: { web: { agent: 'sh', limit } },
    agents: { sh: { command: ['/bin/sh', '-c', body], env: { OUT: out } } },
  }
}

async function dispatcherOn(host: Host, config: Json): Promise<Dispatching> {
  const made = new Dispatching(host.place)
  made.configure(config)
  made.daemon = await host.serve()
  return made
}

const dispatchersIn = (status: Json) =>
  (status.dispatchers as Json[])
    .map(({ host, slots_max }) => ({ host, slots_max }))
    .toSorted((a, b) => a.host.localeCompare(b.host))

function skipWithoutHosts(context: TestContext): void {
  // reason: there is one dispatcher per host, and without namespaces there is one host
  if (!isApart) context.skip(because('no namespaces: dispatchers on several hosts'))
}

describe('dispatchers on two hosts', () => {
  test('with different configs: neither takes away what the other set', async (context) => {
    skipWithoutHosts(context)
    const [east, west] = (await hosts('east', 'west')) as [Host, Host]
    const agents = new Agents()
    const config = configOf({ slots: 2, limit: 1, body: HELD }, agents)
    const first = await dispatcherOn(east, { ...config, users: { ada: { weight: 3 } } })
    const other = { ...config, projects: { web: { agent: 'sh' } }, pool: { limit: 9 } }
    const second = await dispatcherOn(west, other)
    const inForce = async () => {
      const { limits, pool } = await west.ask('queue', 'status')
      return [pool.max, ...limits.map(({ project, max }: Json) => [project, max])]
    }
    expect(await inForce()).toEqual([9, ['web', 1]])
    for (const user of ['ada', 'ben', 'cy']) await first.add(`${user}-1`, user)
    await agents.seen('start', 1)
    second.configure({ ...other, pool: {} })
    await until('west takes its pool back', async () => (await inForce())[0] === null)
    expect(await inForce()).toEqual([null, ['web', 1]])
    second.configure({ ...other, pool: {}, projects: { web: { agent: 'sh', limit: 2 } } })
    await agents.seen('start', 2)
    expect(await inForce()).toEqual([null, ['web', 2]])
    agents.go()
    await agents.seen('end', 3)
    const lines = agents.lines()
    expect(most(lines, userOf)).toEqual({ all: 2, each: 1 })
  }, 60_000)

  test('share a queue: one run at a time for a user, three for a project', async (context) => {
    skipWithoutHosts(context)
    const [east, west] = (await hosts('east', 'west')) as [Host, Host]
    const agents = new Agents()
    const config = configOf({ slots: 2, limit: 3, body: HELD }, agents)
    const all = await dispatcherOn(east, config)
    await dispatcherOn(west, config)
    const users = ['ada', 'ben', 'cy', 'dee']
    const ids = users.flatMap((user) => Array.from({ length: 4 }, (_, i) => `${user}-${i}`))
    await Promise.all(ids.map((id) => all.add(id, id.split('-')[0]!)))
    const status = await west.ask('queue', 'status')
    const both = ['east', 'west'].map((host) => ({ host, slots_max: 2 }))
    expect(dispatchersIn(status)).toEqual(both)
    // None ends before three have begun: how many meet by chance says how busy the machine is.
    await agents.seen('start', 3)
    agents.go()
    await agents.seen('end', ids.length)
    await all.idle()
    const lines = agents.lines()
    expect(
      lines
        .filter(({ what }) => what === 'start')
        .map(({ task }) => task)
        .toSorted(),
    ).toEqual(ids.toSorted())
    expect(most(lines, userOf)).toEqual({ all: 3, each: 1 })
    const perHost = (host: string) => lines.filter((line) => line.host === host)
    for (const host of ['east', 'west']) {
      expect(perHost(host).length).toBeGreaterThan(0)
      expect(most(perHost(host), userOf).all).toBeLessThanOrEqual(2)
    }
  }, 120_000)
})

describe('when a host is switched off, and another is cut off', () => {
  test('their runs are settled after TTL and grace, never two at once', async (context) => {
    skipWithoutHosts(context)
    const [stays, dies, far] = (await hosts('stays', 'dies', 'far')) as [Host, Host, Host]
    const agents = new Agents()
    const setting = { slots: 2, limit: 4, body: HELD, ttl_ms: TTL_MS }
    const none = configOf({ ...setting, slots: 0 }, agents)
    const all = await dispatcherOn(stays, none)
    for (const host of [dies, far]) await dispatcherOn(host, configOf(setting, agents))
    const ids = ['ada', 'ben', 'cy', 'dee'].map((user) => `${user}-1`)
    for (const id of ids) await all.add(id, userOf({ task: id } as Line))
    await agents.seen('start', 4)
    expect(['dies', 'far'].map((host) => agents.running(host).length)).toEqual([2, 2])

    // What was renewed last was renewed a third of a TTL before this at most: to die takes a while.
    const cut_ms = performance.now()
    far.cut()
    await dies.die()
    const gone_ms = performance.now()
    agents.end(agents.running('dies'))
    all.configure(configOf({ ...setting, slots: 4 }, agents))
    const starts = await agents.seen('start', 8)
    const after = (ms: number) => starts.slice(4).map(({ at_ms }) => Math.round(at_ms - ms))
    const took = after(gone_ms)
    process.stderr.write(`runs of lost hosts began again after ${took.join()} ms\n`)
    expect(new Set(starts.slice(4).map(({ host }) => host))).toEqual(new Set(['stays']))
    // And then it was not touched until TTL and grace were over.
    expect(Math.min(...after(cut_ms))).toBeGreaterThan((TTL_MS * 2) / 3 + GRACE_MS - 1_000)
    expect(Math.max(...took)).toBeLessThan(TTL_MS + GRACE_MS + START_MS)

    far.heal()
    await until('the host that was cut off is back', async () => {
      const reply = await far.daemon.post('queue.add', {
        id: 'eve-1',
        user: 'eve',
        project: 'web',
        prompt: 'again',
      })
      return reply.status === 200
    })
    agents.go()
    for (const id of [...ids, 'eve-1']) await all.become(id, 'done')
    const lines = agents.lines()
    expect(most(lines, ({ task }) => task).each).toBe(1)
    expect(most(lines, userOf)).toEqual({ all: 4, each: 1 })
    expect(new Set(lines.map(({ fence }) => fence)).size).toBe(9)
    const shown = dispatchersIn(await far.ask('queue', 'status')).map(({ host }) => host)
    expect(shown).toEqual(expect.arrayContaining(['far', 'stays']))
  }, 180_000)
})
