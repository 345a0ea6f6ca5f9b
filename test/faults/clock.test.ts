import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { uptime } from 'node:os'
import { describe, expect, test, type TestContext } from 'vitest'
import { call } from '../../src/operations/call.ts'
import { acquire, lockStatus } from '../../src/operations/locks.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  openFile,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'
import { because, BIN, CLI, type Options, sandbox, until } from '../support/processes.ts'

const HOUR_MS = 3_600_000
const a = callerOf('a')
const b = callerOf('b')

describe.for([
  ['SQLite', openSqlite],
  ['file', openFile],
] as const)('the wall clock jumps, on %s', ([, open]) => {
  for (const [how, jump_ms] of [
    ['forward', 48 * HOUR_MS],
    ['back', -48 * HOUR_MS],
  ] as const) {
    test(`${how}: a lease ends neither early nor late`, async () => {
      const machine = new MachineSim()
      const store = open(temporaryFolder(), machine)
      const ask = (caller: typeof a) =>
        call(store, acquire, { names: ['x'], ttl_seconds: 60 }, caller)
      await ask(a)
      machine.jumpWall(jump_ms)
      await expectRefusal(ask(b), 'held')
      const status = await call(store, lockStatus, { name: 'x' }, b)
      expect(status.expires_in_seconds).toBe(60)
      expect(Date.parse(status.lock_expires_at!)).toBe(machine.wallMs() + 60_000)
      machine.advance(59_999)
      await expectRefusal(ask(b), 'held')
      machine.advance(1)
      expect(await ask(b)).toMatchObject({ holder: 'b' })
      await store.close()
    })
  }
})

const FAKETIME = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/faketime/libfaketime.so.1',
  '/usr/local/lib/faketime/libfaketime.so.1',
].find((path) => existsSync(path))

/** Real processes on real monotonic time, each with another idea of what day it is. */
const WAYS: { name: string; missing?: string; at: (hours: number) => Options }[] = [
  {
    name: 'a replaced Date',
    at: (hours) => {
      const shift = `const now = Date.now; Date.now = () => now() + ${hours * HOUR_MS}`
      const load = `data:text/javascript,${encodeURIComponent(shift)}`
      return { program: [process.execPath, '--import', load, CLI] }
    },
  },
  {
    name: 'libfaketime',
    ...(FAKETIME === undefined && { missing: 'libfaketime is not installed here' }),
    at: (hours) => {
      const env = {
        LD_PRELOAD: FAKETIME,
        FAKETIME: `${hours >= 0 ? '+' : ''}${hours}h`,
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
        DONT_FAKE_MONOTONIC: '1',
      }
      return { env }
    },
  },
]

describe('processes that disagree about the time of day', () => {
  for (const { name, missing, at } of WAYS) {
    test(`by ${name}: agree on who holds a lock, and on when it is free`, async (context) => {
      // reason: told on standard error; the same is shown with a replaced Date wherever this runs
      if (missing !== undefined) context.skip(because(missing))
      const place = sandbox()
      const take = (agent: string, ttl: string) => [
        'lock',
        'acquire',
        'x',
        '--ttl',
        ttl,
        '--agent',
        agent,
      ]
      const lease = await place.ok(take('a', '1h'))
      for (const hours of [48, -48]) {
        const { details } = await place.refused(take('b', '1h'), 'held', 5, at(hours))
        expect(Math.abs(details.expires_in_seconds - 3600)).toBeLessThan(120)
        const shown = Date.parse(details.expires_at) - hours * HOUR_MS
        expect(Math.abs(shown - Date.parse(lease.expires_at)), 'its own time of day').toBeLessThan(
          5_000,
        )
      }
      await place.ok(['lock', 'renew', 'x', '--ttl', '1s', '--agent', 'a'], at(-48))
      await until('it runs out', async () => {
        return !(await place.ok(['lock', 'status', 'x'], at(-48))).is_locked
      })
      await place.ok(take('b', '1h'), at(-48))
      expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true })
    })
  }
})

// Of util-linux. Named here: in place, knip takes it for a program of a package.
const UNSHARE = 'unshare'
const hasTimeSpaces = spawnSync(UNSHARE, ['--time', '--fork', 'true']).status === 0

/** The command line in a time namespace of its own, whose clocks since boot differ by so much. */
function inTime(seconds: number): Options {
  const shift = String(seconds)
  const clocks = ['--monotonic', shift, '--boottime', shift]
  return { program: [UNSHARE, '--time', '--fork', ...clocks, process.execPath, BIN] }
}

const AHEAD = inTime(1_000_000)
const BEHIND = inTime(-Math.floor(uptime() / 2))

describe.for(['sqlite', 'file'])('processes in time namespaces of their own, on %s', (store) => {
  const takes = (agent: string, ...more: string[]) => {
    return ['lock', 'acquire', 'x', '--agent', agent, ...more]
  }
  const begin = (context: TestContext) => {
    // reason: told on standard error; a time namespace is made by root
    if (!hasTimeSpaces) context.skip(because('no time namespaces: containers with other clocks'))
    const place = sandbox()
    if (store === 'file') place.env['LEASEHOLD_STORE'] = 'file:'
    return place
  }

  test('agree on who holds a lock, and on when it is free', async (context) => {
    const place = begin(context)
    await place.ok(takes('a', '--ttl', '1h'))
    for (const there of [AHEAD, BEHIND, {}, BEHIND, AHEAD]) {
      const { details } = await place.refused(takes('b'), 'held', 5, there)
      expect(Math.abs(details.expires_in_seconds - 3600)).toBeLessThan(120)
      await place.ok(['lock', 'acquire', 'y', '--agent', 'a'], there)
    }
    for (const [there, other] of [
      [AHEAD, BEHIND],
      [BEHIND, AHEAD],
    ] as const) {
      const asked_ms = performance.now()
      await place.ok(['lock', 'renew', 'x', '--ttl', '2s', '--agent', 'a'], there)
      const renewed_ms = performance.now()
      await until('it runs out', async () => {
        return !(await place.ok(['lock', 'status', 'x'], other)).is_locked
      })
      expect(performance.now() - asked_ms, 'not early').toBeGreaterThan(2_000)
      expect(performance.now() - renewed_ms, 'not late').toBeLessThan(10_000)
      await place.ok(takes('a', '--ttl', '1h'), other)
    }
  }, 60_000)

  test('do not take a process that lives for a dead one', async (context) => {
    const place = begin(context)
    await place.ok(takes('a', '--ttl', '1h', '--pid', String(process.pid)))
    for (const there of [AHEAD, BEHIND]) await place.refused(takes('b'), 'held', 5, there)
    expect(await place.ok(['lock', 'status', 'x'])).toMatchObject({ lock_holder: 'a' })
  })
})
