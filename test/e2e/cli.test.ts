import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import { BIN, CLI, TEST_CLI } from '../support/processes.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** A build that does as little as one can, and says that it was asked. */
const BUILDS_AGAIN = `import { writeFileSync } from 'node:fs'
import use from './bin/first-use.js'
writeFileSync(use.BUILT_FROM, use.sources())
console.log('built')`

describe('what a newcomer sees', () => {
  test('bare leasehold shows its help, and makes nothing', async () => {
    const place = sandbox()
    const bare = await place.cli([])
    expect(bare).toEqual(await place.cli(['--help']))
    expect(bare).toMatchObject({ code: 0, err: '' })
    expect(bare.out).toContain('leasehold task add')
    expect(existsSync(place.state)).toBe(false)
  })

  test('--help and every noun’s help teach with lines that can be typed', async () => {
    const place = sandbox()
    const root = await place.cli(['--help'])
    expect(root).toMatchObject({ code: 0, err: '' })
    expect(root.out).toMatch(/Exit codes: 0 ok, 2 bad input/)
    for (const word of ['lock', 'task', 'run', 'agent', 'db', 'doctor']) {
      expect(root.out).toMatch(new RegExp(`^ {2}${word} `, 'm'))
      const { code, out } = await place.cli([word, '--help'])
      expect(code, word).toBe(0)
      if (word !== 'doctor') expect(out, word).toMatch(/Examples:\n {2}leasehold /)
    }
    const verb = await place.cli(['lock', 'acquire', '--help'])
    for (const flag of ['--ttl', '--wait', '--priority', '--pid']) {
      expect(verb.out).toContain(flag)
    }
    // Programs give it, and so it is understood; people are not shown it.
    expect(verb.out).not.toContain('--request-id')
    expect(await place.cli(['help', 'lock'])).toMatchObject({ code: 0 })
  })

  test('--version says the version of the package, from bin/leasehold as well', async () => {
    const place = sandbox()
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    for (const program of [[process.execPath, CLI], [process.execPath, BIN], [BIN]]) {
      expect(await place.cli(['--version'], { program })).toMatchObject({ out: `${version}\n` })
    }
  })

  test('a fresh checkout builds itself once, a moved one again, a broken one says so', async () => {
    const place = sandbox()
    const root = dirname(dirname(BIN))
    const parts = ['bin', 'src', 'build.mjs', 'package.json', 'package-lock.json', 'tsconfig.json']
    for (const part of parts) cpSync(join(root, part), place.path(part), { recursive: true })
    symlinkSync(join(root, 'node_modules'), place.path('node_modules'))
    const program = [process.execPath, place.path('bin/leasehold')]
    const list = () => place.cli(['--json', 'lock', 'list'], { program })
    for (const { code, out, err } of await Promise.all(Array.from({ length: 5 }, list))) {
      expect({ code, out, err }).toEqual({ code: 0, out: '{"items":[],"next":null}\n', err: '' })
    }
    expect(existsSync(place.path('.building'))).toBe(false)

    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
        cwd: place.folder,
        stdio: 'ignore',
      })
    git('init')
    writeFileSync(place.path('build.mjs'), BUILDS_AGAIN)
    git('add', ...parts)
    git('commit', '-m', 'one')
    expect(await list()).toMatchObject({ code: 0, err: 'built\n' })
    git('commit', '--allow-empty', '-m', 'two')
    expect(await list()).toMatchObject({ code: 0, err: '' })
    writeFileSync(place.path('build.mjs'), 'process.exit(1)')
    git('commit', '-am', 'three')
    expect((await list()).err).toMatch(/has changed since it was built, and could not be built/)
    expect(await list()).toMatchObject({ code: 0, err: '' })
  })

  test('an unknown command, verb or flag is refused with what there is', async () => {
    const place = sandbox()
    expect((await place.refused(['frobnicate'], 'invalid', 2)).message).toContain('task, lock')
    const { message } = await place.refused(['lokc', 'list'], 'invalid', 2)
    expect(message).toBe('There is no command lokc: did you mean lock?')
    await place.refused(['lock', 'frobnicate'], 'invalid', 2)
    await place.refused(['lock', 'acquire', 'x', '--frobnicate'], 'invalid', 2)
    await place.refused(['lock', 'acquire'], 'invalid', 2)
    const noun = await place.cli(['lock'])
    expect(noun).toMatchObject({ code: 2, out: '' })
    expect(noun.err).toContain('Usage: leasehold lock')
  })

  test('flags may stand before the noun or behind the verb', async () => {
    const place = sandbox()
    for (const args of [
      ['--json', '--agent', 'a', 'lock', 'acquire', 'x'],
      ['lock', 'acquire', '--agent', 'a', 'x', '--json'],
      ['lock', '--json', 'acquire', 'x', '--agent=a'],
    ]) {
      const { code, json } = await place.cli(args)
      expect({ code, ...json }, args.join(' ')).toMatchObject({ code: 0, name: 'x', holder: 'a' })
    }
  })

  test('planted bugs are not in the program that ships', async () => {
    expect(readFileSync(CLI, 'utf8')).not.toContain('LEASEHOLD_PLANT')
    expect(readFileSync(TEST_CLI, 'utf8')).toContain('LEASEHOLD_PLANT')
    const place = sandbox()
    const env = { LEASEHOLD_PLANT: 'S1' }
    await place.ok(['lock', 'acquire', 'x', '--agent', 'a'], { env })
    await place.refused(['lock', 'acquire', 'x', '--agent', 'b'], 'held', 5, { env })
    const program = [process.execPath, TEST_CLI]
    await place.ok(['lock', 'acquire', 'x', '--agent', 'b'], { env, program })
  })
})

describe('lock', () => {
  test('acquire answers with a lease, status and list show it, release frees it', async () => {
    const place = sandbox()
    const lease = await place.ok(['lock', 'acquire', 'build', '--agent', 'a', '--ttl', '90'])
    expect(lease).toEqual({
      name: 'build',
      holder: 'a',
      fence: lease.fence,
      lock_id: `build#${lease.fence}`,
      acquired_at: expect.stringMatching(ISO),
      expires_at: expect.stringMatching(ISO),
      expires_in_seconds: 90,
      ttl_seconds: 90,
    })
    const status = await place.ok(['lock', 'status', 'build'])
    expect(status).toMatchObject({
      name: 'build',
      is_locked: true,
      lock_holder: 'a',
      lock_expires_at: lease.expires_at,
      fence: lease.fence,
      waiters: [],
    })
    const list = await place.ok(['lock', 'list'])
    expect(list).toMatchObject({ items: [{ name: 'build', fence: lease.fence }], next: null })
    await place.refused(['lock', 'release', 'build', '--agent', 'b'], 'held', 5)
    const released = await place.ok(['lock', 'release', 'build', '--agent', 'a'])
    expect(released).toEqual({ name: 'build', fence: lease.fence, released: true })
    await place.refused(['lock', 'release', 'build', '--agent', 'a'], 'lease_expired', 5)
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
  })

  test('durations are seconds or carry their unit', async () => {
    const place = sandbox()
    for (const [ttl, seconds] of [
      ['90', 90],
      ['30s', 30],
      ['5m', 300],
      ['2h', 7200],
    ] as const) {
      const lease = await place.ok(['lock', 'acquire', 'x', '--agent', 'a', '--ttl', ttl])
      expect(lease.ttl_seconds, ttl).toBe(seconds)
    }
    expect((await place.ok(['lock', 'acquire', 'y'])).ttl_seconds).toBe(300)
    await place.refused(['lock', 'acquire', 'x', '--ttl', 'soon'], 'invalid', 2)
  })

  test('a person reads sentences and tables', async () => {
    const place = sandbox()
    const as = ['--agent', 'a']
    const say = async (args: string[]) => (await place.cli([...args, ...as])).out
    expect(await say(['lock', 'list'])).toBe(
      'No lock is held. Take one: leasehold lock acquire NAME\n',
    )
    expect(await say(['lock', 'acquire', 'b'])).toMatch(
      /^acquired b for a, fence 1, until \d\d:\d\d:\d\d \(5m 00s\)\n$/,
    )
    expect(await say(['lock', 'renew', 'b', '--ttl', '1m'])).toMatch(
      /^renewed b until \d\d:\d\d:\d\d \(1m 00s\)\n$/,
    )
    expect(await say(['lock', 'status', 'b'])).toMatch(/^b is held by a\n {2}fence 1, expires in /)
    expect(await say(['lock', 'list'])).toMatch(/^LOCK +HOLDER +FENCE +PID +EXPIRES IN\nb +a +1 /)
    expect(await say(['lock', 'handoff', 'b', '--to', 'c'])).toBe('handed b to c, fence 2\n')
    expect(await say(['lock', 'force-release', 'b'])).toBe('force-released b, which c held\n')
    expect(await say(['lock', 'status', 'b'])).toBe('b is free\n')
  })

  test('a refusal says who is asking, and the flag that would work', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'x', 'y', '--agent', 'bob'])
    const said = async (...args: string[]) => (await place.cli(args)).err
    const asking = /You ask as cli:\S+\. If you are bob: --agent bob/
    expect(await said('lock', 'release', 'x')).toMatch(asking)
    expect(await said('lock', 'acquire', 'x')).toMatch(/until \d\d:\d\d:\d\d\n[^]*--wait 30s/)
    const stale = await said('lock', 'renew', 'x', '--fence', '9', '--agent', 'bob')
    expect(stale).toContain('--fence 1')
    await place.ok(['lock', 'release', 'x', '--fence', '1', '--agent', 'bob'])
    await place.ok(['task', 'add', 'One', '--assigned-to', 'zed'])
    expect(await said('task', 'claim', '1')).toContain('--agent zed')
    expect(await said('memory', 'get', 'k', '--scope', 'web')).toContain('--scope project:web')
    expect(await said('memory', 'get', 'k')).toContain('--scope project:NAME')
  })

  test('several names are released all or nothing', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'db', 'cache', '--agent', 'a'])
    await place.refused(['lock', 'release', 'db', 'other', '--agent', 'a'], 'lease_expired', 5)
    await place.refused(['lock', 'release', 'db', 'cache', '--fence', '1'], 'invalid', 2)
    const { items } = await place.ok(['lock', 'release', 'db', 'cache', '--agent', 'a'])
    expect(items).toMatchObject([{ name: 'db', released: true }, { name: 'cache' }])
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
  })

  test('several names are taken all or nothing', async () => {
    const place = sandbox()
    const both = await place.ok(['lock', 'acquire', 'db', 'cache', '--agent', 'a'])
    expect(both.items.map(({ name }: { name: string }) => name)).toEqual(['cache', 'db'])
    await place.refused(['lock', 'acquire', 'free', 'db', '--agent', 'b'], 'held', 5)
    expect(await place.ok(['lock', 'status', 'free'])).toMatchObject({ is_locked: false })
  })

  test('--pid ties the lock to a process: it is free as soon as that is dead', async () => {
    const place = sandbox()
    const holder = place.start([], { program: ['sh', '-c', 'read line'] })
    const pid = ['--pid', `${holder.pid}`]
    const lease = await place.ok(['lock', 'acquire', 'x', '--agent', 'a', '--ttl', '1h', ...pid])
    expect(lease.pid).toBe(holder.pid)
    const { details } = await place.refused(['lock', 'acquire', 'x', '--agent', 'a'], 'held', 5)
    expect(details).toMatchObject({ by_you: true, pid: holder.pid })
    await place.refused(['lock', 'acquire', 'x', '--agent', 'b'], 'held', 5)
    holder.kill('SIGKILL')
    await holder.ended
    const next = await place.ok(['lock', 'acquire', 'x', '--agent', 'b'])
    expect(next.fence).toBeGreaterThan(lease.fence)
    await place.refused(['lock', 'acquire', 'y', '--pid', `${holder.pid}`], 'invalid', 2)
  })

  test('a plain call with the default agent is not taken over by another terminal', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'x'])
    const { details } = await place.refused(['lock', 'acquire', 'x'], 'held', 5)
    expect(details).toMatchObject({ by_you: true })
    await place.ok(['lock', 'acquire', 'x', '--takeover'])
  })

  test('a waiter gets the lock when it is released; explain says where it stands', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'x', '--agent', 'a'])
    const args = ['--json', 'lock', 'acquire', 'x', '--wait', '60s', '--agent', 'b']
    const waiter = place.start(args, { input: '' })
    const { sentence } = await explained()
    expect(sentence).toMatch(/a holds it until/)
    await place.refused(['lock', 'explain', 'x', '--agent', 'nobody'], 'not_found', 3)
    await place.ok(['lock', 'release', 'x', '--agent', 'a'])
    expect((await waiter.ended).json).toMatchObject({ name: 'x', holder: 'b' })

    async function explained() {
      for (;;) {
        const { code, out } = await place.cli(['--json', 'lock', 'explain', 'x', '--agent', 'b'])
        if (code === 0) return JSON.parse(out) as { sentence: string }
      }
    }
  })

  test('the same request id gets the same lease again', async () => {
    const place = sandbox()
    const args = ['lock', 'acquire', 'x', '--agent', 'a', '--request-id', 'r1']
    const { fence } = await place.ok(args)
    expect(await place.ok(args)).toMatchObject({ fence })
    await place.refused([...args, '--ttl', '9m'], 'invalid', 2)
  })

  test('force-release is audited, and refused where nobody holds the lock', async () => {
    const place = sandbox()
    await place.refused(['lock', 'force-release', 'x'], 'not_found', 3)
    const { fence } = await place.ok(['lock', 'acquire', 'x', '--agent', 'a'])
    await place.ok(['lock', 'force-release', 'x', '--reason', 'a is gone'])
    const renew = ['lock', 'renew', 'x', '--fence', `${fence}`, '--agent', 'a']
    const { message } = await place.refused(renew, 'lease_expired', 5)
    expect(message).toContain('force_released')
  })

  test('hand-off gives a new fence to the next holder; the task stays in progress', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'Survey', '--id', '7'])
    const { lease } = await place.ok(['task', 'claim', '7', '--agent', 'a'])
    const fence = ['--fence', `${lease.fence}`]
    const args = ['lock', 'handoff', 'task:7', ...fence, '--to', 'b', '--agent', 'a']
    const handed = await place.ok(args)
    expect(handed).toMatchObject({ holder: 'b' })
    expect(handed.fence).toBeGreaterThan(lease.fence)
    const task = await place.ok(['task', 'show', '7'])
    expect(task).toMatchObject({ status: 'in_progress', assignee: 'b', attempts: 2 })
    await place.refused(['lock', 'renew', 'task:7', ...fence, '--agent', 'a'], 'fence_stale', 5)
  })
})

describe('the store is private', () => {
  test('a missing folder is made, for this login only', async () => {
    const place = sandbox()
    await place.ok(['lock', 'acquire', 'x'], { env: { LEASEHOLD_DIR: place.path('a/b/c') } })
    expect(statSync(place.path('a/b/c')).mode & 0o777).toBe(0o700)
    expect(statSync(place.path('a/b/c/leasehold.db')).mode & 0o777).toBe(0o600)
  })

  test('reading makes nothing', async () => {
    const place = sandbox()
    for (const args of [
      ['lock', 'list'],
      ['task', 'list'],
      ['agent', 'list'],
      ['db', 'check'],
    ]) {
      await place.ok(args)
    }
    await place.ok(['doctor'])
    expect(existsSync(place.state)).toBe(false)
  })

  test('the doctor says what is wrong with config.json, and goes on', async () => {
    const place = sandbox()
    mkdirSync(place.state, { mode: 0o700 })
    writeFileSync(join(place.state, 'config.json'), '{ "slot": { "max": 2 } }')
    const { code, out } = await place.cli(['doctor', '--json'])
    expect(code).toBe(1)
    const { findings } = JSON.parse(out) as { findings: { what: string; ok: boolean }[] }
    expect(findings.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual(['config'])
    expect(out).toContain('did you mean slots?')
  })
})
