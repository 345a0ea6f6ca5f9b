import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import type { connect as Connect } from '../../src/index.ts'
import { isBeingWritten } from '../../test/support/being_written.ts'
import { copied, descriptors, movedOver, removed, restored, surrogate } from './cases_grants.ts'
import type { Counts } from './counts.ts'
import { Disk } from './disk.ts'
import { command } from './final.ts'
import { after, nowMs } from './history.ts'
import { BIN, Proc, SDK, signal, until } from './processes.ts'
import { Scene } from './scene.ts'
import { type AimedCase, type Json, living, Stage, take } from './stage.ts'

// Of util-linux; named here: in place, knip takes them for programs of packages.
const [UNSHARE, SETPRIV] = ['unshare', 'setpriv'] as const
const crowdedSweep: AimedCase = {
  name: 'a dead holder is noticed beside a hundred living ones',
  item: '7',
  async run(stage) {
    await stage.daemon.keep()
    const sdk = (await import(SDK)) as { connect: typeof Connect }
    const client = await sdk.connect({ dir: stage.state, agent: 'busy' })
    stage.finally(() => client.close())
    // Of a process that lives, and all of them end before the lock that matters.
    const names = Array.from({ length: 120 }, (_, i) => `busy${i}`)
    for (let i = 0; i < names.length; i += 20) {
      await client.lock.acquire({ names: names.slice(i, i + 20), ttl_seconds: 60 })
    }
    const dying = living(stage)
    await stage.cli(...take('x', 'holder', '10m', '--pid', String(dying)))
    const input = { names: ['x'], agent: 'waiter', ttl_seconds: 5, wait_seconds: 8 }
    const waiting = stage.daemon.ask('lock.acquire', input)
    await until(async () => {
      const { json } = await stage.daemon.ask('lock.status', { name: 'x' })
      return json.waiters.length > 0
    }, 5_000)
    signal(dying, 'SIGKILL')
    const begun = nowMs()
    const { status } = await waiting
    const ms = Math.round(nowMs() - begun)
    return status === 200 && ms <= 3_000 ? undefined : `served with ${status} after ${ms} ms`
  },
}

const pausedDaemon: AimedCase = {
  name: 'a command under `run` goes on while the daemon is stopped and the store is well',
  item: '9',
  async run(stage) {
    await stage.daemon.keep()
    const script = 'sleep 5; echo fine'
    const argv = [BIN, 'run', '--lock', 'x', '--ttl', '3s', '--', '/bin/sh', '-c', script]
    const run = new Proc('run', 'wrapper', argv, stage.env, stage.scene.folder)
    const held = async () => (await stage.cli('lock', 'status', 'x')).is_locked === true
    await until(held, 5_000)
    const { pid } = stage.daemon.proc!
    // Not within a transaction: then the store is not well, and everybody has to wait.
    for (signal(pid, 'SIGSTOP'); isBeingWritten(stage.state); signal(pid, 'SIGSTOP')) {
      signal(pid, 'SIGCONT')
      await after(5)
    }
    const { code } = await run.ended
    signal(pid, 'SIGCONT')
    return run.out.includes('fine') ? undefined : `the command was ended: ${code} ${run.err}`
  },
}

const stoppedDoctor: AimedCase = {
  name: 'a command does not hang on a stopped daemon',
  item: '9',
  async run(stage) {
    await stage.daemon.keep()
    await stage.cli('task', 'add', 'First')
    signal(stage.daemon.proc!.pid, 'SIGSTOP')
    const begun = nowMs()
    const added = await stage.cli('task', 'add', 'Second')
    const ms = Math.round(nowMs() - begun)
    signal(stage.daemon.proc!.pid, 'SIGCONT')
    return ms < 10_000 ? undefined : `it took ${ms} ms: ${JSON.stringify(added)}`
  },
}

const fullAtStart: AimedCase = {
  name: 'a daemon that is started on a full disk serves or ends, and serves when there is room',
  item: '9',
  async run(stage) {
    const disk = Disk.small(join(stage.scene.folder, 'disk'), '4m')
    if (typeof disk === 'string') return stage.skip(disk)
    stage.finally(() => disk.close())
    const state = join(disk.folder, 'state')
    const env = { ...stage.env, LEASEHOLD_DIR: state }
    await command(env, 'task', 'add', 'Kept')
    const give = disk.fill()
    const argv = [BIN, '--json', 'serve', '--port', '0']
    const first = new Proc('first', 'daemon', argv, env, stage.scene.folder)
    stage.finally(() => signal(first.pid, 'SIGKILL'))
    const serves = () => first.out.includes('"url"')
    await until(() => first.isOver || serves(), 12_000)
    const isStuck = !first.isOver && !serves()
    give()
    if (isStuck && !(await until(() => first.isOver || serves(), 8_000))) {
      return 'it neither serves nor ends, also when there is room again'
    }
    signal(first.pid, 'SIGKILL')
    await first.ended
    const { items = [] } = await command(env, 'task', 'list')
    const added = await command(env, 'task', 'add', 'Later')
    return items.length === 1 && added.id ? undefined : `lost: ${JSON.stringify({ items, added })}`
  },
}

const readOnly: AimedCase = {
  name: 'on a read-only disk writes are refused, reads go on, and it recovers by itself',
  item: 'L4',
  async run(stage) {
    const disk = Disk.small(join(stage.scene.folder, 'disk'), '4m')
    if (typeof disk === 'string') return stage.skip(disk)
    stage.finally(() => disk.close())
    const env = { ...stage.env, LEASEHOLD_DIR: join(disk.folder, 'state') }
    await command(env, 'task', 'add', 'Kept')
    const why = disk.readOnly(true)
    if (why !== undefined) return stage.skip(why)
    const refused = await command(env, 'task', 'add', 'Later')
    const { items = [] } = await command(env, 'task', 'list')
    disk.readOnly(false)
    const added = await command(env, 'task', 'add', 'Later')
    const code = refused.error?.code
    if (code === 'unavailable' && items.length === 1 && added.id) return undefined
    return JSON.stringify({ refused, items, added })
  },
}

const clockSpace: AimedCase = {
  name: 'a lease is not taken early from a time namespace, and time goes on',
  item: '9b',
  async run(stage) {
    const apart = [UNSHARE, '--time', '--monotonic', '100000', '--boottime', '100000'] as const
    if (spawnSync(apart[0], [...apart.slice(1), 'true']).status !== 0) {
      return stage.skip('no time namespaces here')
    }
    const there = (...args: string[]): Json => {
      const argv = [...apart.slice(1), process.execPath, BIN, '--json', ...args]
      const { stdout, stderr } = spawnSync(apart[0], argv, {
        env: stage.env,
        cwd: stage.scene.folder,
        encoding: 'utf8',
      })
      return JSON.parse(stdout || stderr)
    }
    await stage.cli(...take('x', 'holder'))
    const stolen = there(...take('x', 'thief'))
    if (stolen.fence !== undefined) return `a thief got fence ${stolen.fence}`
    await stage.cli(...take('y', 'holder', '1s'))
    await after(1_300)
    const free = await stage.cli(...take('y', 'next', '1s'))
    return free.fence === undefined ? `time stands still: ${JSON.stringify(free.error)}` : undefined
  },
}

const replays: AimedCase = {
  name: 'a replayed grant that has died is refused',
  item: '11',
  async run(stage) {
    await stage.daemon.keep()
    const ask = (name: string, input: object) => {
      return stage.daemon.ask(name, { agent: 'a', ttl_seconds: 1, request_id: name, ...input })
    }
    await stage.cli('task', 'add', 'One', '--id', '1')
    await stage.cli('task', 'add', 'Two', '--id', '2')
    const asks: [string, object][] = [
      ['lock.acquire', { names: ['x'] }],
      ['task.claim', { id: '1' }],
      ['task.status', { id: '2', status: 'in_progress' }],
      ['lock.renew', { name: 'x' }],
    ]
    for (const [name, input] of asks) {
      const { status, json } = await ask(name, input)
      if (status !== 200) return `${name} was refused: ${JSON.stringify(json)}`
    }
    await after(2_300)
    for (const [name, input] of asks) {
      const { json } = await ask(name, input)
      if (json.error?.code !== 'lease_expired') return `${name}: ${JSON.stringify(json)}`
    }
    return undefined
  },
}

const nameless: AimedCase = {
  name: 'a login without a name can work',
  item: '14',
  async run(stage) {
    const home = join(stage.scene.folder, 'nameless')
    fs.mkdirSync(home, { mode: 0o700 })
    fs.chownSync(home, 4_242, 4_242)
    fs.chmodSync(stage.scene.folder, 0o755)
    const args = ['--reuid=4242', '--regid=4242', '--clear-groups', process.execPath, BIN]
    const env = { ...stage.env, HOME: home, LEASEHOLD_DIR: join(home, 'state') }
    const { status, stderr, error } = spawnSync(SETPRIV, [...args, 'task', 'add', 'One'], {
      env,
      cwd: home,
      encoding: 'utf8',
    })
    if (error || /setpriv|EACCES|Cannot find module/.test(stderr)) {
      return stage.skip(error?.message ?? stderr.split('\n')[0]!)
    }
    return status === 0 ? undefined : stderr
  },
}

export const AIMED: AimedCase[] = [
  descriptors,
  removed,
  movedOver,
  restored,
  copied,
  surrogate,
  crowdedSweep,
  pausedDaemon,
  stoppedDoctor,
  fullAtStart,
  readOnly,
  clockSpace,
  replays,
  nameless,
]

/** Plays one case in a folder of its own, and counts what it found. */
export async function tryCase(aimed: AimedCase, folder: string, counts: Counts): Promise<void> {
  counts.now = aimed.name
  fs.mkdirSync(folder, { recursive: true })
  const stage = new Stage(new Scene(aimed.name, folder, 1, counts))
  try {
    const wrong = await aimed.run(stage)
    counts.figure('aimed cases', 1)
    if (wrong !== undefined) stage.scene.violate(`item ${aimed.item}`, wrong)
  } catch (error) {
    stage.scene.violate(`item ${aimed.item}`, `the case failed: ${(error as Error).stack}`)
  } finally {
    await stage.end()
  }
}
