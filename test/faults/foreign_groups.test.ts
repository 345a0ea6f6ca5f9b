import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { plant } from '../../src/core/planted.ts'
import type { GroupRef } from '../../src/core/rows.ts'
import { groupFact, leaderFact, newMark, stopGroup } from '../../src/machine/group.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { ownProcess, processRef } from '../../src/machine/process.ts'
import { runFolder } from '../../src/machine/run_output.ts'
import { dispatching, HELD, script } from '../support/dispatching.ts'
import { servingPlace, startDaemon } from '../doors/serving.ts'
import { Commands } from '../e2e/commands.ts'
import {
  isAlive,
  type Running,
  sandbox,
  type Sandbox,
  TEST_CLI,
  until,
} from '../support/processes.ts'

/** Another program of this login, in a group and session of its own: with a mark, or without. */
async function bystander(place: Sandbox, mark?: string): Promise<Running> {
  const env = mark === undefined ? {} : { LEASEHOLD_MARK: mark }
  const running = place.start(['sleep', '600'], { program: ['setsid'], env })
  onTestFinished(async () => {
    running.kill('SIGKILL')
    await running.ended
  })
  await until('it leads a group', () => leads(running.pid))
  return running
}

const leads = (pid: number) => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return Number(stat[2]) === pid && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
}

const claimed = ({ pid }: { pid: number }, mark = newMark()): GroupRef => ({
  ...processRef(pid)!,
  mark,
})

afterEach(() => plant(undefined))

describe('a group that does not carry its mark', () => {
  test('is not ours: nobody stops it, whatever a row says of it', async () => {
    const victim = await bystander(sandbox(), newMark())
    const { mark: _, ...unmarked } = claimed(victim)
    const refs = [claimed(victim), unmarked, { ...unmarked, mark: '' }]
    for (const ref of refs) expect(groupFact(ref)).toBe('unknown')
    const stopped = await Promise.all(refs.map((ref) => stopGroup(ref, 0)))
    expect(stopped).toEqual([false, false, false])
    expect(leaderFact(claimed(victim))).toBe('dead')
    expect(isAlive(victim.pid)).toBe(true)
  })

  test('is stopped all the same by the planted bug, which this shows', async () => {
    plant('R8')
    const victim = await bystander(sandbox())
    expect(await stopGroup(claimed(victim), 0)).toBe(true)
    expect(isAlive(victim.pid)).toBe(false)
  })

  test('one that carries it is stopped, also among several marks', async () => {
    const [outer, inner] = [newMark(), newMark()]
    const command = await bystander(sandbox(), `${outer}:${inner}`)
    for (const mark of [outer, inner]) expect(groupFact(claimed(command, mark))).toBe('alive')
    expect(await stopGroup(claimed(command, outer), 0)).toBe(true)
    expect(isAlive(command.pid)).toBe(false)
  })

  test('the first process, all of them and our own are never meant', async () => {
    for (const pid of [0, 1, -1, Number.NaN, 2 ** 31]) {
      const ref = { ...ownProcess(), pid, mark: newMark() }
      expect(groupFact(ref), String(pid)).not.toBe('alive')
      expect(leaderFact(ref), String(pid)).toBe('dead')
    }
    const own = Number(readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ')[2])
    for (const pid of [process.pid, process.ppid, own]) {
      // Whatever started these tests may have led our group, and be gone.
      const ref = { ...ownProcess(), ...processRef(pid), pid, mark: newMark() }
      expect(leaderFact(ref), String(pid)).toBe('dead')
      expect(groupFact(ref), String(pid)).not.toBe('alive')
    }
  })
})

describe('naming a group', () => {
  test('is not for an agent’s token, nor of what is not ours for an admin’s', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const victim = await bystander(place)
    const token = await daemon.agentToken('mallory')
    const { fence } = await daemon.ok('lock.acquire', { name: 'x', agent: 'mallory' })
    const naming = (group: object) => ({ name: 'x', fence, group, agent: 'mallory' })
    const asked = async (group: object, sending = {}) => {
      const { status, json } = await daemon.post('lock.name_group', naming(group), sending)
      return [status, json?.error?.code]
    }
    expect(await asked(claimed(victim), { token })).toEqual([403, 'forbidden'])
    expect(await asked(claimed(victim))).toEqual([409, 'illegal_move'])
    expect(await asked(claimed(daemon.running))).toEqual([409, 'illegal_move'])
    expect(await asked(claimed({ pid: process.pid }))).toEqual([409, 'illegal_move'])
    const { mark: _, ...unmarked } = claimed(victim)
    for (const more of [{ pid: 1 }, { pid: 0 }, { pid: -1 }, { pid: 2 ** 23 }, { mark: 'x' }]) {
      expect(await asked({ ...claimed(victim), ...more })).toEqual([400, 'invalid'])
    }
    expect(await asked(unmarked)).toEqual([400, 'invalid'])
    const start = { id: 'T-1.1', fence, process: ownProcess(), group: claimed(victim) }
    const reply = await daemon.post('run.start', { ...start, agent: 'mallory' }, { token })
    expect([reply.status, reply.json.error.code]).toEqual([403, 'forbidden'])
    expect(isAlive(victim.pid)).toBe(true)

    const mark = newMark()
    const command = await bystander(place, mark)
    expect(await asked(claimed(command, mark))).toEqual([200, undefined])
    const force = ['lock', 'force-release', 'x', '--force']
    await place.ok(force)
    await until('the command is stopped', () => !isAlive(command.pid))
  })
})

describe('a store that names the group of another program', () => {
  /** As somebody would leave it who edits the store, or restores one of another time. */
  async function edited(program?: string[]) {
    const place = servingPlace()
    const victim = await bystander(place)
    await place.ok(['lock', 'acquire', 'x', '--agent', 'mallory', '--ttl', '1s'])
    const store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
    await store.write((view) => {
      const lease = view.get('lease', 'x')!
      view.put('lease', { ...lease, ended_at: null, group: claimed(victim) })
    })
    await store.close()
    const env = program ? { LEASEHOLD_PLANT: 'R8' } : {}
    const daemon = await startDaemon(place, { ...(program && { program }), env })
    return { victim, daemon, place }
  }

  test('has nobody stopped: its lock comes free with the grace', async () => {
    const { victim, daemon } = await edited()
    await until('the lease is over', async () => {
      const { expires_in_seconds } = await daemon.ok('lock.status', { name: 'x' })
      return expires_in_seconds === 0
    })
    const asked = { name: 'x', agent: 'bob', wait_seconds: 30 }
    expect(await daemon.ok('lock.acquire', asked)).toMatchObject({ holder: 'bob' })
    expect(isAlive(victim.pid)).toBe(true)
  })

  test('the planted bug stops it', async () => {
    const { victim } = await edited([process.execPath, TEST_CLI])
    expect(await until('it was stopped', () => !isAlive(victim.pid))).toBe(true)
  })
})

describe('a file that names another program as a runner', () => {
  async function ended(env: Record<string, string> = {}) {
    const all = dispatching({ agents: { held: script(HELD) } })
    const victim = await bystander(all.place)
    const daemon = await all.serve(env, TEST_CLI)
    await all.add('ada-1', 'ada')
    await all.seen('start', 1)
    const file = join(runFolder(all.place.state, 'ada-1.1'), 'meta.json')
    const meta = await until('its runner has noted itself', () => all.meta('ada-1.1'))
    const { pid, start } = processRef(victim.pid)!
    all.write('go')
    await until('the run has ended', () => all.meta('ada-1.1')?.ended_at)
    const forged = { ...meta, ended_at: null, runner_pid: pid, runner_start: start }
    writeFileSync(file, JSON.stringify(forged), { mode: 0o600 })
    // The next one looks for what its predecessor left.
    await daemon.kill()
    await all.serve(env, TEST_CLI)
    await until('the file is put right', () => all.meta('ada-1.1')?.ended_at)
    return { all, victim }
  }

  test('has nobody ended', async () => {
    const { all, victim } = await ended()
    // What a settling daemon would end, it would have ended by the time this run is over.
    await all.add('ada-2', 'ada')
    await until('another run has ended', () => all.meta('ada-2.1')?.ended_at)
    await all.daemon.stop()
    expect(isAlive(victim.pid)).toBe(true)
  })

  test('the planted bug ends it', async () => {
    const { victim } = await ended({ LEASEHOLD_PLANT: 'R8' })
    expect(await until('it was ended', () => !isAlive(victim.pid))).toBe(true)
  })
})

describe('a command of leasehold run', () => {
  test('is not ended by what it asks itself when its own lease is over', async () => {
    const place = sandbox()
    const commands = new Commands(place)
    const body = `kill -STOP $PPID
      until leasehold lock status x --json | grep -q '"expires_in_seconds":0'; do :; done
      leasehold lock acquire x --agent other; echo "said $?"; kill -CONT $PPID`
    const ended = await commands.run(['--lock', 'x', '--ttl', '1s'], body).ended
    expect(ended.out).toContain('said 5')
  })

  test('is stopped with its lease though it has thrown its environment away', async () => {
    const place = sandbox()
    const begun = `env -i PATH="$PATH" sh -c 'echo begun; while :; do sleep 0.1; done'`
    const running = place.start([
      'run',
      '--lock',
      'x',
      '--ttl',
      '3s',
      '--',
      'sh',
      '-c',
      `exec ${begun}`,
    ])
    await running.said(/^begun$/m)
    await place.ok(['lock', 'force-release', 'x', '--force'])
    expect((await running.ended).code).toBe(5)
  })

  test('with a token it runs unnamed, and ends with its wrapper', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const env = {
      LEASEHOLD_TOKEN: await daemon.agentToken('ada'),
      LEASEHOLD_URL: daemon.url,
      LEASEHOLD_DIR: place.path(randomUUID()),
    }
    const commands = new Commands(place)
    const once = await commands.run(['--lock', 'x'], 'exit 7', env).ended
    expect(once).toMatchObject({ code: 7, err: '' })
    const { is_locked } = await daemon.ok('lock.status', { name: 'x' })
    expect(is_locked).toBe(false)
    const running = await commands.begun(['--lock', 'x'], 'trap "" TERM; forever', env)
    running.kill('SIGKILL')
    await running.ended
    await until('the command is gone', () => !isAlive(commands.pids().at(-1)!))
    const asked = { name: 'x', agent: 'bob', wait_seconds: 10 }
    expect(await daemon.ok('lock.acquire', asked)).toMatchObject({ holder: 'bob' })
  })
})
