import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { command } from './final.ts'
import { after } from './history.ts'
import { ALONE, until } from './processes.ts'
import { type AimedCase, type Json, Line, living, type Stage, take } from './stage.ts'

// Of util-linux; named here: in place, knip takes it for a program of a package.
const [PRLIMIT] = ['prlimit'] as const
const openFiles = (pid: number) => fs.readdirSync(`/proc/${pid}/fd`).length

export const descriptors: AimedCase = {
  name: 'a living holder is not robbed when descriptors run out',
  item: '1',
  async run(stage) {
    await stage.daemon.keep()
    const pid = living(stage)
    await stage.cli(...take('x', 'holder', '2m', '--pid', String(pid)))
    const daemon = stage.daemon.proc!
    // Connections that are open before: nobody else gets through to it then.
    const kept = Array.from({ length: 6 }, () => new Line(stage.daemon.port))
    for (const line of kept) await line.get('/readyz')
    const open = fs.readdirSync(`/proc/${daemon.pid}/fd`).length
    const limited = spawnSync(PRLIMIT, ['--pid', String(daemon.pid), `--nofile=${open + 4}:`])
    if (limited.status !== 0) return stage.skip('prlimit is not there')
    const idle = Array.from({ length: 40 }, () => {
      return connect(stage.daemon.port, '127.0.0.1').on('error', () => undefined)
    })
    await until(() => openFiles(daemon.pid) >= open + 4, 3_000)
    const input = { names: ['x'], agent: 'thief', ttl_seconds: 5 }
    const asked = kept.map((line) => line.post('/v1/lock.acquire', stage.daemon.secret, input))
    const got = (await Promise.all(asked)).find((said) => said.includes('"fence"'))
    spawnSync(PRLIMIT, ['--pid', String(daemon.pid), '--nofile=1024:'])
    for (const socket of idle) socket.destroy()
    for (const line of kept) line.end()
    if (got && !got.includes('"error"')) return `a thief got it: ${got}`
    await after(1_200)
    const now = await stage.cli(...take('x', 'thief'))
    if (now.fence !== undefined) return `a thief got fence ${now.fence} afterwards`
    return daemon.isOver ? `the daemon ended: ${daemon.err.slice(-300)}` : undefined
  },
}

/** Puts another store in place of the one that the daemon has open. */
const replaced = (how: string, replace: (stage: Stage) => Promise<void> | void): AimedCase => ({
  name: `one holder per lock although the store was replaced (${how})`,
  item: '2',
  async run(stage) {
    if (ALONE.length === 0) return stage.skip('no network of its own for a command')
    await stage.daemon.keep()
    await stage.cli('db', 'backup', join(stage.scene.folder, 'backup.db'))
    const first = await stage.cli(...take('x', 'first'))
    await replace(stage)
    const second = await stage.direct(...take('x', 'second'))
    const renew = ['lock', 'renew', 'x', '--fence', String(first.fence), '--agent', 'first']
    const renewed = await stage.cli(...renew)
    stage.scene.note('replaced', JSON.stringify({ first, second, renewed }))
    if (second.fence === undefined || renewed.fence === undefined) return undefined
    return `first renewed fence ${first.fence} after second was given ${second.fence}`
  },
})

const files = (stage: Stage) =>
  ['', '-wal', '-shm'].map((end) => join(stage.state, `leasehold.db${end}`))

export const removed = replaced('removed', (stage) => {
  for (const file of files(stage)) fs.rmSync(file, { force: true })
})

export const movedOver = replaced('a backup moved over it', (stage) => {
  const [database, ...logs] = files(stage)
  for (const file of logs) fs.rmSync(file, { force: true })
  fs.renameSync(join(stage.scene.folder, 'backup.db'), database!)
})

export const restored = replaced('restored', async (stage) => {
  await stage.direct('db', 'restore', join(stage.scene.folder, 'backup.db'), '--yes')
})

export const copied: AimedCase = {
  name: 'a copied state folder does not drive the original',
  item: '2',
  async run(stage) {
    await stage.daemon.keep()
    await stage.cli('task', 'add', 'Mine')
    const copy = join(stage.scene.folder, 'copy')
    fs.cpSync(stage.state, copy, { recursive: true })
    await command({ ...stage.env, LEASEHOLD_DIR: copy }, 'task', 'add', 'Of the copy')
    const { items = [] } = await stage.cli('task', 'list')
    const titles = items.map(({ title }: Json) => title)
    return titles.includes('Of the copy') ? 'a task of the copy is in the original' : undefined
  },
}

export const surrogate: AimedCase = {
  name: 'half of a character does not mark the store damaged',
  item: '2a',
  async run(stage) {
    await stage.daemon.keep()
    for (const input of [{ names: ['l\ud800x'] }, { names: ['y'], agent: 'a\udc00' }]) {
      await stage.daemon.ask('lock.acquire', { ...input, ttl_seconds: 5 }).catch(() => undefined)
    }
    await stage.daemon.ask('task.create', { title: 't\ud800' }).catch(() => undefined)
    const check = await stage.cli('db', 'check')
    return check.ok === true ? undefined : JSON.stringify(check.error ?? check.problems)
  },
}
