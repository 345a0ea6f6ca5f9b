import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { daemonOn } from '../support/daemons.ts'
import { sandbox } from '../support/inside.ts'
import { isAlive, type Sandbox, TEST_CLI, until } from '../support/processes.ts'
import { Commands, DEAF } from './commands.ts'

/** A lease so long that nothing here can be explained by its end. */
const LONG = ['--ttl', '1h']

async function prepared() {
  const place = sandbox()
  const commands = new Commands(place)
  await place.ok(['task', 'add', 'The answer', '--id', '42'])
  return { place, commands }
}

function fails(step: () => void): boolean {
  try {
    step()
    return false
  } catch {
    return true
  }
}

async function expectFree(place: Sandbox, name = 'task:42'): Promise<void> {
  expect(await place.ok(['lock', 'status', name])).toMatchObject({ is_locked: false })
}

describe('run passes the command through', () => {
  test('the exit code, also that of a signal, is the command’s own', async () => {
    const { place } = await prepared()
    for (const [command, code] of [
      ['exit 0', 0],
      ['exit 7', 7],
      ['kill -9 $$', 137],
      ['no-such-command-here', 127],
    ] as const) {
      const ended = await place.process([
        'run',
        '--task',
        '42',
        '--wait',
        '5s',
        '--',
        'sh',
        '-c',
        command,
      ])
      expect(ended.code, command).toBe(code)
      await expectFree(place)
    }
  })

  test('input, output and arguments reach the command untouched', async () => {
    const { place } = await prepared()
    const args = ['run', '--lock', 'x', '--', 'sh', '-c', 'cat; echo "$@" >&2', 'sh']
    const ended = await place.process([...args, '--json', '$(a) ;b', '--'], { input: 'said' })
    expect(ended).toMatchObject({ code: 0, out: 'said', err: '--json $(a) ;b --\n' })
  })

  test('the command finds its lock, fence, task and agent in its environment', async () => {
    const { place, commands } = await prepared()
    const body =
      'echo "$LEASEHOLD_LOCK $LEASEHOLD_TASK $LEASEHOLD_AGENT"; leasehold lock renew task:42'
    const ended = await commands.run(['--task', '42'], body, { LEASEHOLD_AGENT: 'me' }).ended
    expect(ended).toMatchObject({ code: 0, err: '' })
    expect(ended.out).toMatch(/^task:42 42 me\nrenewed task:42 /)
    await expectFree(place)
  })

  test('it says what to hold, or is refused before anything runs', async () => {
    const { place } = await prepared()
    await place.refused(['run', '--', 'true'], 'invalid', 2)
    await place.refused(['run', '--task', '42', '--lock', 'x', '--', 'true'], 'invalid', 2)
    await place.refused(['run', '--task', '43', '--', 'true'], 'not_found', 3)
    await place.refused(['run', '--lock', 'x', '--ttl', '0', '--', 'true'], 'invalid', 2)
    await place.refused(['run', '--lock', 'x', '--claim', '--', 'true'], 'invalid', 2)
    await place.refused(['run', '--lock', '', '--', 'true'], 'invalid', 2)
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
  })
})

describe('the lock is free after every kind of end', () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    test(`${signal} to the wrapper ends the command and frees the lock`, async () => {
      const { place, commands } = await prepared()
      const running = await commands.begun(['--task', '42', ...LONG], 'forever')
      running.kill(signal)
      expect(await running.ended).toMatchObject({ code })
      expect(commands.pids().some(isAlive)).toBe(false)
      await expectFree(place)
    })
  }

  test('what a command leaves in the background is ended before the lock is free', async () => {
    const { place, commands } = await prepared()
    const running = commands.run(['--task', '42', ...LONG], `${DEAF}\nexit 3`)
    expect(await running.ended).toMatchObject({ code: 3 })
    const [deaf] = commands.read('deaf').trim().split('\n').map(Number)
    expect(isAlive(deaf!)).toBe(false)
    await expectFree(place)
  })

  test('kill -9 of the wrapper: the next run starts when the whole old group is gone', async () => {
    const { place, commands } = await prepared()
    const first = await commands.begun(['--task', '42', ...LONG], `${DEAF}\ntrap "" TERM; forever`)
    const deaf = Number(await until('deaf', () => commands.read('deaf').trim()))
    first.kill('SIGKILL')
    const second = commands.run(
      ['--task', '42'],
      `
      if [ -d /proc/${deaf} ] && grep -q '^State:.[^ZX]' /proc/${deaf}/status
      then echo deaf runs beside >> "$WITNESS/overlaps"; fi`,
    )
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
    commands.expectNeverTwo()
    expect([...commands.pids(), deaf].some(isAlive)).toBe(false)
    await expectFree(place)
  })

  test('kill -9 of the wrapper with a token: the lock is free when the group is gone', async () => {
    const { place, commands } = await prepared()
    const { url } = await daemonOn(place)
    const tokens = ['ada', 'bob'].map(async (agent) => {
      const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', agent])
      return { LEASEHOLD_URL: url, LEASEHOLD_TOKEN: token as string }
    })
    const [ada, bob] = await Promise.all(tokens)
    const deaf = 'trap "" TERM; forever'
    const first = await commands.begun(['--task', '42', ...LONG], deaf, ada)
    const second = commands.run(['--task', '42', '--wait', '30s'], 'exit 0', bob)
    first.kill('SIGKILL')
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
    commands.expectNeverTwo()
    await expectFree(place)
  })

  test('the witness of all this does see two commands at once (planted S1)', async () => {
    const { place, commands } = await prepared()
    const first = await commands.begun(['--task', '42', ...LONG], 'forever')
    const args = ['run', '--task', '42', '--', 'sh', '-c', `${commands.witness}exit 0`]
    const options = { program: [process.execPath, TEST_CLI], env: { LEASEHOLD_PLANT: 'S1' } }
    expect(await place.cli(args, options)).toMatchObject({ code: 0 })
    expect(commands.read('overlaps')).toMatch(/^\d+ runs beside \d+$/m)
    first.kill('SIGTERM')
    await first.ended
  })

  test('kill -9 of the wrapper with nobody asking: the command dies all the same', async () => {
    const { place, commands } = await prepared()
    const running = await commands.begun(['--task', '42', ...LONG], `${DEAF}\nforever`)
    const deaf = Number(await until('deaf', () => commands.read('deaf').trim()))
    running.kill('SIGKILL')
    await commands.expectGone([...commands.pids(), deaf])
    await expectFree(place)
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true })
  })
})

describe('a second run is refused while the first one runs', () => {
  const REFUSED = (pid: number) =>
    `error: Task 42 is already being processed (PID: ${pid})\n  next: `

  for (const [who, first, second] of [
    ['from another terminal with the same default agent', undefined, undefined],
    ['with the same given agent', 'me', 'me'],
    ['with another agent', 'me', 'you'],
  ] as const) {
    test(`${who}: it is told the pid of the wrapper, and people how to free it`, async () => {
      const { place, commands } = await prepared()
      const as = (agent?: string): string[] => (agent ? ['--agent', agent] : [])
      const running = await commands.begun(['--task', '42', ...as(first)], 'forever')
      const ended = await commands.run(['--task', '42', ...as(second)], 'true').ended
      expect(ended).toMatchObject({ code: 5, out: '' })
      expect(ended.err.startsWith(REFUSED(running.pid)), ended.err).toBe(true)
      // Whom an id was given may be an agent, and would try it.
      const told = ended.err.includes('leasehold lock force-release task:42')
      expect(told, ended.err).toBe(second === undefined)
      commands.expectNeverTwo()
      const error = await place.refused(['run', '--task', '42', '--', 'true'], 'held', 5)
      expect(error.details).toMatchObject({ name: 'task:42', pid: running.pid })
      running.kill('SIGTERM')
      await running.ended
    })
  }

  test('with --wait it starts as soon as the first has ended', async () => {
    const { place, commands } = await prepared()
    const first = await commands.begun(['--task', '42', ...LONG], 'until_there over; exit 4')
    const second = commands.run(['--task', '42', '--wait', '60s'], 'echo mine')
    await until('the second waits', async () => {
      return (await place.ok(['lock', 'status', 'task:42'])).waiters.length === 1
    })
    commands.write('over')
    expect(await first.ended).toMatchObject({ code: 4 })
    expect(await second.ended).toMatchObject({ code: 0, out: 'mine\n' })
    commands.expectNeverTwo()
  })

  test('a wait that is too short ends with held, and leaves nothing in the line', async () => {
    const { place, commands } = await prepared()
    const first = await commands.begun(['--task', '42', ...LONG], 'forever')
    const second = await commands.run(['--task', '42', '--wait', '300ms'], 'true').ended
    expect(second.code).toBe(5)
    expect(second.err.startsWith(REFUSED(first.pid)), second.err).toBe(true)
    expect(await place.ok(['lock', 'status', 'task:42'])).toMatchObject({ waiters: [] })
    first.kill('SIGTERM')
    await first.ended
  })
})

describe('a run that loses its lease', () => {
  test('force-release stops the command, and run exits with 5', async () => {
    const { place, commands } = await prepared()
    const running = await commands.begun(['--task', '42', ...LONG], `${DEAF}\nforever`)
    const freed = await place.ok(['lock', 'force-release', 'task:42', '--reason', 'stuck'])
    expect(freed).toMatchObject({ name: 'task:42', released: true })
    expect(commands.pids().some(isAlive)).toBe(false)
    const ended = await running.ended
    expect(ended.code).toBe(5)
    expect(ended.err).toContain('lost the lease on task:42')
    await expectFree(place)
  })

  test('stopped past its TTL: its command goes before the next starts; exit 5', async () => {
    const { place, commands } = await prepared()
    const first = await commands.begun(['--task', '42', '--ttl', '1s'], 'trap "" TERM; forever')
    await first.stop()
    const second = await commands.begun(
      ['--task', '42', ...LONG, '--wait', '60s'],
      'until_there over',
    )
    commands.expectNeverTwo()
    const [old, now] = commands.pids()
    expect([isAlive(old!), isAlive(now!)]).toEqual([false, true])
    first.kill('SIGCONT')
    expect(await first.ended).toMatchObject({ code: 5 })
    expect((await place.ok(['lock', 'status', 'task:42'])).pid).toBe(second.pid)
    commands.write('over')
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
  })

  test('a store that does not answer: the command is stopped in good time', async () => {
    const { place, commands } = await prepared()
    // More patience with the store than the lease allows for.
    const env = { LEASEHOLD_BUSY_TIMEOUT_MS: '60000' }
    const running = await commands.begun(['--task', '42', '--ttl', '3s'], 'forever', env)
    const db = openDatabase(join(place.state, 'leasehold.db'), { readOnly: false })
    onTestFinished(() => db.close())
    await until('the store is ours', () => !fails(() => db.exec('BEGIN IMMEDIATE')))
    await commands.expectGone(commands.pids(), 20_000)
    db.exec('ROLLBACK')
    const ended = await running.ended
    expect(ended.code).toBe(5)
    expect(ended.err).toContain('could not be renewed in time')
    await expectFree(place)
  })

  test('the lease outlasts its TTL while the command runs, for it is renewed', async () => {
    const { place, commands } = await prepared()
    // Of a shorter one a busy machine may lose a renewal, and then the command is rightly stopped.
    const running = await commands.begun(['--task', '42', '--ttl', '3s'], 'until_there over')
    const { lock_expires_at } = await place.ok(['lock', 'status', 'task:42'])
    await until('its TTL has passed', async () => {
      const status = await place.ok(['lock', 'status', 'task:42'])
      expect(status.is_locked).toBe(true)
      return Date.parse(status.lock_expires_at) > Date.parse(lock_expires_at) + 3_000
    })
    commands.write('over')
    expect(await running.ended).toMatchObject({ code: 0 })
  })
})

describe('runs inside runs', () => {
  test('two that wait for each other: one is told of the deadlock, one goes on', async () => {
    const { place, commands } = await prepared()
    const nested = (mine: string, other: string) =>
      commands.run(
        ['--lock', mine, ...LONG],
        `
        : > "$WITNESS/${mine}"; until_there ${other}
        leasehold run --lock ${other} --wait 50s -- true`,
      )
    const both = await Promise.all([nested('a', 'b').ended, nested('b', 'a').ended])
    const codes = both.map(({ code }) => String(code))
    expect(codes.toSorted(), JSON.stringify(both)).toEqual(['0', '5'])
    const victim = both.find(({ code }) => code === 5)!
    expect(victim.err).toMatch(/error: Waiting would never end: .*waits for [ab].*waits for [ab]/)
    await expectFree(place, 'a')
    await expectFree(place, 'b')
  })
})

describe('run --claim settles the task', () => {
  for (const [how, command, code, status] of [
    ['exit 0 is done', 'exit 0', 0, 'done'],
    ['any other exit is failed', 'exit 9', 9, 'failed'],
    ['ended by a signal, it is to be done again', 'kill -9 $$', 137, 'todo'],
  ] as const) {
    test(how, async () => {
      const { place } = await prepared()
      const args = ['run', '--task', '42', '--claim', '--', 'sh', '-c', command]
      const ended = await place.process(args)
      expect(ended.code).toBe(code)
      const task = await place.ok(['task', 'show', '42'])
      expect(task).toMatchObject({ status, attempts: 1, lock_until: null })
      await expectFree(place)
    })
  }

  test('kill -9 of the wrapper returns the task to todo, with no assignee', async () => {
    const { place, commands } = await prepared()
    const running = await commands.begun(['--task', '42', '--claim', ...LONG], 'forever')
    const claimed = await place.ok(['task', 'show', '42'])
    expect(claimed).toMatchObject({ status: 'in_progress' })
    running.kill('SIGKILL')
    await commands.expectGone(commands.pids())
    // A look says nothing of a group while some process is just becoming another program.
    const task = await until('it is given back', async () => {
      const found = await place.ok(['task', 'show', '42'])
      return found.status === 'todo' && found
    })
    expect(task).toMatchObject({ assignee: null, attempts: 1 })
    const again = await place.ok(['task', 'claim', '42'])
    expect(again).toMatchObject({ task: { attempts: 2 }, run: { id: '42.2' } })
  })

  test('without --claim the status of the task is left alone', async () => {
    const { place, commands } = await prepared()
    const running = await commands.begun(['--task', '42'], 'until_there over')
    expect(await place.ok(['task', 'show', '42'])).toMatchObject({ status: 'todo' })
    await place.refused(['task', 'claim', '42', '--agent', 'other'], 'held', 5)
    commands.write('over')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(await place.ok(['task', 'show', '42'])).toMatchObject({ status: 'todo', attempts: 0 })
  })

  test('a status set by the command counts at once; the lock stays to the end', async () => {
    const { place, commands } = await prepared()
    const body = 'leasehold task status 42 review; echo moved; until_there over; exit 3'
    const running = await commands.begun(['--task', '42', '--claim', ...LONG], body)
    await running.said(/^moved$/m)
    expect(running.err).toBe('')
    expect(await place.ok(['task', 'show', '42'])).toMatchObject({ status: 'review' })
    const status = await place.ok(['lock', 'status', 'task:42'])
    expect(status).toMatchObject({ is_locked: true, pid: running.pid })
    await place.refused(['task', 'status', '42', 'done', '--agent', 'other'], 'held', 5)
    commands.write('over')
    expect(await running.ended).toMatchObject({ code: 3 })
    expect(await place.ok(['task', 'show', '42'])).toMatchObject({ status: 'review' })
    await expectFree(place)
  })
})
