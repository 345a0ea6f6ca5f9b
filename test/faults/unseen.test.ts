import { execFileSync } from 'node:child_process'
import { chownSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import { newMark } from '../../src/machine/group.ts'
import { processRef } from '../../src/machine/process.ts'
import { type Daemon, clientOf, daemonOn } from '../support/daemons.ts'
import { expectRefusal } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import {
  because,
  isAlive,
  type Running,
  sandbox,
  type Sandbox,
  TEST_CLI,
  until,
} from '../support/processes.ts'

/** Programs of the system, where it has them; no package brings them. */
const [PRLIMIT, UNSHARE] = ['prlimit', 'unshare'] as const
const NOBODY = 65_534
const PLANTED = { program: [process.execPath, TEST_CLI], env: { LEASEHOLD_PLANT: 'S1 look' } }

/** Keeps none of the pipes of whoever started it. */
const APART = 'exec sleep 3600 < /dev/null > /dev/null 2>&1'

/** A process that does nothing until the test has ended. */
function idle(place: Sandbox): Running {
  const running = place.start(['3600'], { program: ['sleep'] })
  onTestFinished(async () => {
    running.kill('SIGKILL')
    await running.ended
  })
  return running
}

function open(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Lets a running process open so many files, no more. */
function allow(pid: number, files: number): void {
  execFileSync(PRLIMIT, ['--pid', String(pid), `--nofile=${files}:`])
}

/** From now on every look of the daemon at /proc fails with EMFILE, until the limit is raised. */
function exhaust({ running }: Daemon): void {
  allow(running.pid, 1)
}

async function prepared(options?: typeof PLANTED) {
  const place = sandbox()
  const daemon = await daemonOn(place, 0, options)
  // Over a connection that is open already: a new one would need a descriptor.
  const bob = await clientOf({ dir: place.state, agent: 'bob' })
  await bob.lock.list({})
  return { place, daemon, bob }
}

describe('a daemon without descriptors', () => {
  test('does not take a living holder for dead, and goes on when it has some', async () => {
    const { place, daemon, bob } = await prepared()
    const holder = idle(place)
    const pid = String(holder.pid)
    await place.ok(['lock', 'acquire', 'a', '--agent', 'ada', '--ttl', '10m', '--pid', pid])
    exhaust(daemon)
    for (let i = 0; i < 8; i += 1) {
      await expectRefusal(bob.lock.acquire({ names: ['a'] }), 'held')
    }
    allow(daemon.running.pid, 1024)
    await expectRefusal(bob.lock.acquire({ names: ['a'] }), 'held')
    holder.kill('SIGKILL')
    await holder.ended
    expect(await bob.lock.acquire({ names: ['a'] })).toMatchObject({ holder: 'bob' })
  })

  test('robs it when a look that fails counts as proof (planted S1)', async () => {
    const { place, daemon, bob } = await prepared(PLANTED)
    const pid = String(idle(place).pid)
    await place.ok(['lock', 'acquire', 'a', '--agent', 'ada', '--ttl', '10m', '--pid', pid])
    exhaust(daemon)
    expect(await bob.lock.acquire({ names: ['a'] })).toMatchObject({ holder: 'bob' })
  })

  test('neither dies of a command that it cannot stop, nor frees its lock', async () => {
    const { place, daemon, bob } = await prepared()
    const run = place.start(['run', '--lock', 'a', '--ttl', '10m', '--', 'sh', '-c', APART])
    const command = await until('the command runs', async () => {
      const { lock_holder } = await bob.lock.status({ name: 'a' })
      return lock_holder && place.left().find((pid) => nameOf(pid) === 'sleep')
    })
    exhaust(daemon)
    // Wrapper and watcher at once: nobody is left who would stop the command. Stopped first, the
    // watcher does not see the wrapper die.
    const others = place.left().filter((pid) => pid !== command && pid !== daemon.running.pid)
    for (const name of ['SIGSTOP', 'SIGKILL'] as const) {
      for (const pid of others) process.kill(pid, name)
    }
    await run.ended
    await expectRefusal(bob.lock.acquire({ names: ['a'] }), 'held')
    expect([isAlive(command), isAlive(daemon.running.pid)]).toEqual([true, true])
    allow(daemon.running.pid, 1024)
    expect(await bob.lock.acquire({ names: ['a'], wait_seconds: 30 })).toMatchObject({
      holder: 'bob',
    })
    expect(isAlive(command)).toBe(false)
  })

  test('lets a command be named that it cannot look at now', async () => {
    const { place, daemon, bob } = await prepared()
    const token = readFileSync(join(place.state, 'admin.token'), 'utf8').trim()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const ask = (name: string, input: object) =>
      new Promise<{ fence: number }>((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        const options = { method: 'POST', headers, agent }
        const asked = request(`${daemon.url}/v1/${name}`, options, (response) => {
          json(response).then((reply) => resolve(reply as { fence: number }), reject)
        })
        asked.on('error', reject)
        asked.end(JSON.stringify(input))
      })
    const held = { name: 'a', agent: 'ada' }
    const { fence } = await ask('lock.acquire', held)
    const { pid } = idle(place)
    const group = { ...processRef(pid)!, mark: newMark() }
    exhaust(daemon)
    expect(await ask('lock.name_group', { ...held, fence, group })).toMatchObject({ fence })
    allow(daemon.running.pid, 1024)
    const refused = await ask('lock.name_group', { ...held, fence, group })
    expect(refused).toMatchObject({ error: { code: 'illegal_move' } })
    await bob.lock.force_release({ name: 'a' })
    expect(isAlive(pid)).toBe(true)
  })
})

describe('connections without a token', () => {
  test('cannot use up the descriptors of a daemon', async () => {
    const place = sandbox()
    const program = ['prlimit', '--nofile=128:128', process.execPath, TEST_CLI]
    const daemon = await daemonOn(place, 0, { program })
    const { pid } = daemon.running
    const holder = String(idle(place).pid)
    await place.ok(['lock', 'acquire', 'a', '--agent', 'ada', '--ttl', '10m', '--pid', holder])
    const sockets: Socket[] = []
    onTestFinished(() => sockets.forEach((each) => each.destroy()))
    let closed = 0
    for (let i = 0; i < 300; i += 1) {
      const socket = connect(daemon.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.on('close', () => (closed += 1))
      sockets.push(socket)
    }
    await until('those who came too many are let go', () => closed >= 200)
    expect(open(pid)).toBeLessThan(128 - 16)
    const bob = await clientOf({ url: daemon.url, token: await tokenOf(place) })
    for (let i = 0; i < 8; i += 1) {
      await expectRefusal(bob.lock.acquire({ names: ['a'] }), 'held')
    }
    expect(daemon.running.err).toBe('')
  })
})

async function tokenOf(place: Sandbox): Promise<string> {
  const args = ['token', 'create', '--role', 'agent', '--agent', 'bob']
  return (await place.ok(args)).token
}

function nameOf(pid: number): string {
  return execFileSync('cat', [`/proc/${pid}/comm`], { encoding: 'utf8' }).trim()
}

describe('where /proc hides processes of other logins', () => {
  /** The command line of another login, in a mount namespace whose /proc has hidepid. */
  function elsewhere(context: TestContext) {
    // reason: hidepid takes a mount of /proc, and only root can make one
    if (process.getuid?.() !== 0) context.skip(because('not root: no /proc with hidepid'))
    const place = sandbox()
    const url = postgresUrl(place.folder)
    chownSync(place.folder, NOBODY, NOBODY)
    const login = `--reuid ${NOBODY} --regid ${NOBODY} --clear-groups`
    const hide = (hidepid: number) =>
      `mount -t proc -o hidepid=${hidepid} proc /proc && exec setpriv ${login} "$0" "$@"`
    const env = { LEASEHOLD_STORE: url, LEASEHOLD_DIR: place.path('nobody') }
    const as = (hidepid: number, program: string) => ({
      env,
      program: [UNSHARE, '-m', 'sh', '-c', hide(hidepid), process.execPath, program],
    })
    return { place, url, as }
  }

  test.for([1, 2])(
    'a living holder keeps its lock, a dead one does not (%i)',
    async (hidepid, context) => {
      const { place, url, as } = elsewhere(context)
      const holder = idle(place)
      const acquire = ['lock', 'acquire', 'a', '--agent', 'ada', '--pid', String(holder.pid)]
      await place.ok(acquire, { env: { LEASEHOLD_STORE: url } })
      const other = as(hidepid, TEST_CLI)
      const ask = ['lock', 'acquire', 'a', '--agent', 'bob']
      for (let i = 0; i < 2; i += 1) await place.refused(ask, 'held', 5, other)
      await place.refused(
        ['lock', 'acquire', 'b', '--pid', String(holder.pid)],
        'unavailable',
        75,
        other,
      )
      holder.kill('SIGKILL')
      await holder.ended
      expect(await place.ok(ask, other)).toMatchObject({ holder: 'bob' })
    },
  )

  test('it would be robbed if a look that fails were proof (planted S1)', async (context) => {
    const { place, url, as } = elsewhere(context)
    const acquire = ['lock', 'acquire', 'a', '--agent', 'ada', '--pid', String(idle(place).pid)]
    await place.ok(acquire, { env: { LEASEHOLD_STORE: url } })
    const { env, program } = as(2, TEST_CLI)
    const planted = { program, env: { ...env, ...PLANTED.env } }
    expect(await place.ok(['lock', 'acquire', 'a', '--agent', 'bob'], planted)).toMatchObject({
      holder: 'bob',
    })
  })
})
