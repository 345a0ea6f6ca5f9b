import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  activeAlerts,
  clearAlert,
  dueAlerts,
  raiseAlert,
  settleAlerts,
  showAlert,
  tellAlert,
} from '../../src/core/alert.ts'
import { Courier } from '../../src/daemon/alert_courier.ts'
import { type Channels, type Notice, sendersOf } from '../../src/daemon/alert_sender.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { type Json, type Served, servingPlace, startDaemon } from '../doors/serving.ts'
import { MachineSim, openMemory, temporaryFolder, Verbs } from '../helpers.ts'
import { postgresUrl } from '../postgres.ts'
import { type Sandbox, until } from '../processes.ts'

const SECRET = 'a secret of the test'

interface Posted {
  headers: IncomingHttpHeaders
  body: string
  notice: { id: string; state: string; rule: string; subject: string; message: string }
}

/** Somebody who is told. Refuses the first so many notices. */
async function receiver(refuses = 0) {
  const posted: Posted[] = []
  let refused = 0
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      if (refused < refuses) {
        refused += 1
        response.writeHead(500).end()
        return
      }
      posted.push({ headers: request.headers, body, notice: JSON.parse(body) })
      response.end('thanks')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const told = () => posted.map(({ notice }) => `${notice.state} ${notice.rule} ${notice.subject}`)
  return { url, posted, told, refused: () => refused }
}

function configure(place: Sandbox, alerts: object, more: object = {}): void {
  mkdirSync(place.state, { mode: 0o700 })
  writeFileSync(join(place.state, 'config.json'), JSON.stringify({ alerts, ...more }))
}

/** What was sent is known to have been: nothing is repeated from here on. */
async function allTold(daemon: Served, count = 2): Promise<void> {
  await until(`${count} alerts are told`, async () => {
    const { items } = await daemon.ok('alert.list')
    return items.length === count && items.every((alert: { told: boolean }) => alert.told)
  })
}

test('an expired lock and a lost agent are told once, signed, also over a restart', async () => {
  const place = servingPlace()
  const hook = await receiver(1)
  configure(place, { webhook: { url: hook.url, secret_env: 'HOOK_SECRET' } })
  const env = { HOOK_SECRET: SECRET }
  const first = await startDaemon(place, { env })
  await first.ok('lock.acquire', { names: ['build'], agent: 'ada', ttl_seconds: 1 })
  await allTold(first)
  // The one that was refused is told behind the other.
  expect(hook.told()).toEqual(['raised lock_expired build', 'raised agent_lost ada'])
  expect(hook.refused()).toBe(1)
  for (const { headers, body, notice } of hook.posted) {
    const time = headers['leasehold-timestamp'] as string
    const sum = createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex')
    expect(headers['leasehold-signature']).toBe(`v1=${sum}`)
    expect(Math.abs(Date.now() / 1000 - Number(time))).toBeLessThan(60)
    expect(headers['leasehold-id']).toBe(notice.id)
  }
  const rules = async () =>
    (await place.ok(['alert', 'list'])).items.map((a: Posted['notice']) => a.rule)
  expect(await rules()).toEqual(['agent_lost', 'lock_expired'])
  await first.kill()
  // Nobody is there to notice this one; the next daemon does, with its first write.
  await place.ok(['lock', 'acquire', 'late', '--agent', 'cyd', '--ttl', '1s'])
  await until('it is over', async () => !(await place.ok(['lock', 'status', 'late'])).is_locked)
  const second = await startDaemon(place, { env })
  await until('it is told', () => hook.posted.length === 4)
  expect(hook.told().slice(2)).toEqual(['raised agent_lost cyd', 'raised lock_expired late'])
  await second.ok('lock.acquire', { names: ['build'], agent: 'ada', ttl_seconds: 60 })
  await until('both are over', () => hook.posted.length >= 6)
  expect(hook.told().slice(4).toSorted()).toEqual([
    'cleared agent_lost ada',
    'cleared lock_expired build',
  ])
  expect(await rules()).toEqual(['agent_lost', 'lock_expired'])
  expect(new Set(hook.posted.map(({ notice }) => notice.id)).size).toBe(6)
})

test('a long wait and an old queue are told to a command, and when they are over', async () => {
  const place = servingPlace()
  const file = place.path('told.jsonl')
  const script = `process.stdin.pipe(fs.createWriteStream(process.argv[1], { flags: 'a' }))`
  const rules = { wait_seconds: 1, queue_age_seconds: 1 }
  configure(place, { command: [process.execPath, '-e', script, file], rules })
  const daemon = await startDaemon(place)
  const told = () =>
    (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
      .map((line) => JSON.parse(line) as Posted['notice'])
      .map(({ state, rule, subject }) => `${state} ${rule} ${subject}`)
      .toSorted()
  await daemon.ok('lock.acquire', { names: ['$(touch x)'], agent: 'ada' })
  const waiting = daemon.ok('lock.acquire', {
    names: ['$(touch x)'],
    agent: 'bob',
    wait_seconds: 60,
  })
  await daemon.ok('queue.add', { prompt: 'Mend it', project: 'web', user: 'alice' })
  await until('both are told', () => told().length === 2)
  expect(told()).toEqual(['raised long_wait bob for $(touch x)', 'raised queue_age task 1'])
  await daemon.ok('lock.release', { name: '$(touch x)', agent: 'ada' })
  await waiting
  await daemon.ok('queue.cancel', { id: '1' })
  await until('both are over', () => told().length === 4)
  expect(told().slice(0, 2)).toEqual([
    'cleared long_wait bob for $(touch x)',
    'cleared queue_age task 1',
  ])
})

test('a store that cannot be written is told, and when it can be again', async () => {
  const place = servingPlace()
  const hook = await receiver()
  const alerts = { webhook: { url: hook.url }, rules: { store_trouble_seconds: 1 } }
  configure(place, alerts, { busy_timeout_ms: 100 })
  const daemon = await startDaemon(place)
  await daemon.ok('lock.acquire', { names: ['a'], agent: 'ada' })
  const db = openDatabase(join(place.state, 'leasehold.db'), { readOnly: false })
  onTestFinished(() => db.close())
  db.exec('PRAGMA busy_timeout = 5000')
  // Another program holds the write lock and makes no progress.
  db.exec('BEGIN IMMEDIATE')
  expect((await daemon.post('lock.release', { name: 'a', agent: 'ada' })).status).toBe(503)
  await until('it is told', () => hook.posted.length === 1)
  expect(hook.told()).toEqual(['raised store_trouble the store'])
  const shown = { id: hook.posted[0]!.notice.id, rule: 'store_trouble', subject: 'the store' }
  await until('that is known here', async () => (await daemon.ok('alert.list')).items[0]?.told)
  expect((await daemon.ok('alert.list')).items).toEqual([expect.objectContaining(shown)])
  expect((await daemon.ok('now.get')).alerts).toEqual([expect.objectContaining(shown)])
  expect((await place.cli(['top'])).out).toContain(hook.posted[0]!.notice.message)
  db.exec('ROLLBACK')
  await daemon.ok('lock.release', { name: 'a', agent: 'ada' })
  await until('it is over', () => hook.posted.length === 2)
  expect(hook.told()[1]).toBe('cleared store_trouble the store')
  expect((await daemon.ok('alert.list')).items).toEqual([])
})

test('of two daemons on one PostgreSQL store one tells, then the other', async () => {
  const [here, there] = [servingPlace(), servingPlace()]
  const hook = await receiver()
  const env = { LEASEHOLD_STORE: postgresUrl(here.state) }
  for (const place of [here, there]) configure(place, { webhook: { url: hook.url } })
  const [one, other] = [await startDaemon(here, { env }), await startDaemon(there, { env })]
  await other.ok('lock.acquire', { names: ['a'], agent: 'ada', ttl_seconds: 1 })
  await allTold(other)
  await one.kill()
  await other.ok('lock.acquire', { names: ['b'], agent: 'bob', ttl_seconds: 1 })
  await until('the other tells', () => hook.posted.length === 4)
  expect(hook.told().toSorted()).toEqual([
    'raised agent_lost ada',
    'raised agent_lost bob',
    'raised lock_expired a',
    'raised lock_expired b',
  ])
  expect(hook.posted[0]!.headers).not.toHaveProperty('leasehold-signature')
})

/** The role passes on when its lease is over, which takes half a minute; or when it is ended. */
const IS_LONG = process.env['FAULTS'] === 'long'
const ROLE = { name: 'leasehold:alerts' }

test('a daemon that is paused loses the role: all is told once, also what it missed', async () => {
  const [here, there] = [servingPlace(), servingPlace()]
  const hook = await receiver()
  const env = { LEASEHOLD_STORE: postgresUrl(here.state) }
  const alerts = { webhook: { url: hook.url }, rules: { recover_seconds: 600 } }
  for (const place of [here, there]) configure(place, alerts)
  const [one, other] = [await startDaemon(here, { env }), await startDaemon(there, { env })]
  await other.running.said(/standing by: leasehold:alerts/)
  const told = (lock: string) => hook.told().filter((each) => each.endsWith(` ${lock}`))
  /** A lock that expires, asked for at that daemon. */
  const lose = (at: Served, lock: string) => {
    return at.ok('lock.acquire', { names: [lock], agent: `of-${lock}`, ttl_seconds: 1 })
  }
  await lose(other, 'a')
  await allTold(other)
  const first = await other.ok('lock.status', ROLE)
  await one.running.stop()
  // Whoever has the role does not hear of this one, and the other has no role yet.
  await lose(other, 'b')
  await until('its agent is lost', async () => {
    const { items } = await other.ok('event.list', {})
    return items.some(({ type, agent }: Json) => type === 'agent.lost' && agent === 'of-b')
  })
  expect(told('b')).toEqual([])
  if (!IS_LONG) await other.ok('lock.force_release', ROLE)
  await until('the other tells', () => told('b').length > 0, 60_000)
  const second = await other.ok('lock.status', ROLE)
  expect(second.lock_holder).not.toBe(first.lock_holder)
  expect(second.fence).toBeGreaterThan(first.fence)
  one.running.kill('SIGCONT')
  await one.running.said(/standing by: leasehold:alerts/)
  await lose(one, 'c')
  await allTold(one, 6)
  await other.kill()
  await lose(one, 'd')
  await allTold(one, 8)
  for (const lock of ['a', 'b', 'c', 'd'])
    expect(told(lock)).toEqual([`raised lock_expired ${lock}`])
  expect(new Set(hook.posted.map(({ notice }) => notice.id)).size).toBe(8)
  expect((await one.ok('lock.status', ROLE)).lock_holder).toBe(first.lock_holder)
}, 120_000)

/** A receiver that takes no notice about one subject, and everything else. */
async function pickyReceiver(refused: string) {
  const told: Posted['notice'][] = []
  const headers: IncomingHttpHeaders[] = []
  let tries = 0
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const notice = JSON.parse(body) as Posted['notice']
      headers.push(request.headers)
      if (notice.subject === refused) {
        tries += 1
        response.writeHead(500).end()
        return
      }
      told.push(notice)
      response.end('thanks')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return { url, told, headers, tries: () => tries }
}

/** A command that keeps what it was told; it fails as long as a file is there. */
function keeper(place: Sandbox) {
  const [file, broken] = [place.path('told.jsonl'), place.path('broken')]
  const script = `if (fs.existsSync(process.argv[2])) process.exit(3)
    process.stdin.pipe(fs.createWriteStream(process.argv[1], { flags: 'a' }))`
  const told = () =>
    (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []).map(
      (line) => (JSON.parse(line) as Posted['notice']).subject,
    )
  return { command: [process.execPath, '-e', script, file, broken], broken, told }
}

const lockRules = { agent_lost: false, wait_seconds: 1, recover_seconds: 600 }

test('a name in any script, and the id of a wait, get through a header', async () => {
  const place = servingPlace()
  const hook = await receiver()
  configure(place, { webhook: { url: hook.url }, rules: lockRules })
  const daemon = await startDaemon(place)
  const names = ['замок', '鍵🔑', 'a%b', 'plain']
  for (const name of names) {
    await daemon.ok('lock.acquire', { names: [name], agent: 'zoë', ttl_seconds: 1 })
  }
  await daemon.ok('lock.acquire', { names: ['held'], agent: 'ada' })
  const asked = { names: ['held'], agent: 'zoë', wait_seconds: 60 }
  const waiting = daemon.ok('lock.acquire', asked)
  await until('all are told', () => hook.posted.length === 5)
  const subjects = hook.posted.map(({ notice }) => notice.subject)
  expect(subjects.toSorted()).toEqual([...names, 'zoë for held'].toSorted())
  for (const { headers, notice } of hook.posted) {
    expect(headers['leasehold-id']).toBe(notice.id)
    expect(notice.id).toMatch(/^[!-~]+$/)
  }
  await daemon.ok('lock.release', { name: 'held', agent: 'ada' })
  await waiting
  await until('its end is told', () => hook.told().includes('cleared long_wait zoë for held'))
})

test('a channel that fails does not keep the other from telling, either way', async () => {
  const place = servingPlace()
  const hook = await pickyReceiver('first')
  const { command, broken, told } = keeper(place)
  configure(place, { webhook: { url: hook.url }, command, rules: lockRules })
  const daemon = await startDaemon(place)
  const lose = (name: string) =>
    daemon.ok('lock.acquire', { names: [name], agent: 'ada', ttl_seconds: 1 })
  await lose('first')
  await until('the command is told', () => told().length === 1)
  expect(hook.told).toEqual([])
  writeFileSync(broken, '')
  await lose('second')
  await until('the webhook is told', () => hook.told.length === 1)
  expect(hook.told[0]).toMatchObject({ subject: 'second' })
  expect(told()).toEqual(['first'])
})

test('a notice that nobody takes is put aside after some tries, and the rest goes on', async () => {
  const hook = await pickyReceiver('poison')
  const channels = { webhook: { url: hook.url, secret_env: null }, command: null } as Channels
  const left = new Map<string, Notice>()
  const putAside: [string, string | null][] = []
  const settled = (id: string, why: string | null) => {
    left.delete(id)
    if (why !== null) putAside.push([id, why])
  }
  const letters = {
    due: async () => [...left.values()],
    settle: async (_: string, id: string, why: string | null) => settled(id, why),
    say: () => undefined,
  }
  const courier = new Courier('webhook', sendersOf(channels).get('webhook')!, {}, letters)
  onTestFinished(() => courier.stop())
  const add = (subject: string) => {
    const notice = { rule: 'x', message: 'x', since: '', ended_at: null, host: 'h' }
    left.set(subject, { ...notice, id: subject, state: 'raised', subject })
    courier.wake()
  }
  add('poison')
  // With every notice that gets through, it is tried once more.
  for (let i = 0; putAside.length === 0 && i < 50; i += 1) {
    add(`other-${i}`)
    await until('the other is told', () => hook.told.length === i + 1)
  }
  expect(putAside).toEqual([['poison', 'the webhook answered 500']])
  expect(hook.tries()).toBe(12)
  expect(left.size).toBe(0)
})

test('what was put aside is listed with its alert, and tried again with a new configuration', async () => {
  const verbs = new Verbs(openMemory(temporaryFolder(), new MachineSim()))
  const { store } = verbs
  const condition = { key: 'k', rule: 'r', subject: 's', message: 'm', quiet_ms: null }
  const due = (channel: string) =>
    store.read((view) => dueAlerts(view, channel).map(({ state }) => state))
  const tell = (channel: string, why: string | null) =>
    store.write((view) => {
      const [first] = dueAlerts(view, channel)
      tellAlert(view, { ...first!, channel, why }, ['webhook', 'command'])
    })
  const shown = () => store.read((view) => [...activeAlerts(view)].map(showAlert))
  await store.write((view) => raiseAlert(view, condition, true))
  await tell('command', null)
  expect(await shown()).toMatchObject([{ told: false, undelivered: [] }])
  await tell('webhook', 'it answered 500')
  expect(await shown()).toMatchObject([{ told: true, undelivered: ['webhook: it answered 500'] }])
  await store.write((view) => settleAlerts(view, ['webhook', 'command']))
  expect(await due('webhook')).toEqual(['raised'])
  expect(await due('command')).toEqual([])
  await tell('webhook', null)
  await store.write((view) => clearAlert(view, 'k', true))
  for (const channel of ['webhook', 'command']) {
    expect(await due(channel)).toEqual(['cleared'])
    await tell(channel, null)
  }
  expect(await store.read((view) => view.get('alert', 'k'))).toBeUndefined()
  await store.close()
})

test('what is seen while the store cannot be written is raised when it can be', async () => {
  const place = servingPlace()
  const hook = await receiver()
  const rules = { ...lockRules, wait_seconds: 4, store_trouble_seconds: null }
  configure(place, { webhook: { url: hook.url }, rules }, { busy_timeout_ms: 100 })
  const daemon = await startDaemon(place)
  await daemon.ok('lock.acquire', { names: ['a'], agent: 'ada' })
  const asked = { names: ['a'], agent: 'bob', wait_seconds: 60 }
  const waiting = daemon.post('lock.acquire', asked)
  await until('bob waits', async () => (await daemon.ok('lock.status', { name: 'a' })).waiters > 0)
  const db = openDatabase(join(place.state, 'leasehold.db'), { readOnly: false })
  onTestFinished(() => db.close())
  db.exec('PRAGMA busy_timeout = 5000')
  db.exec('BEGIN IMMEDIATE')
  await daemon.running.said(/alerts have to wait/)
  db.exec('ROLLBACK')
  await until('it is told', () => hook.posted.length > 0, 20_000)
  expect(hook.told()).toEqual(['raised long_wait bob for a'])
  await daemon.ok('lock.release', { name: 'a', agent: 'ada' })
  await waiting
}, 60_000)

test('an alert says what is true now, and ends when its rule does', async () => {
  const place = servingPlace()
  const hook = await receiver()
  const webhook = { url: hook.url }
  const rules = { queue_age_seconds: 1 }
  configure(place, { webhook, rules })
  const daemon = await startDaemon(place)
  const add = (id: string) =>
    daemon.ok('queue.add', { id, prompt: 'x', project: 'web', user: `of-${id}` })
  await add('one')
  await add('two')
  const subjects = async () =>
    (await daemon.ok('alert.list')).items.map(({ subject }: Json) => subject)
  await until('it is raised', async () => (await subjects()).length === 1)
  const [first] = await subjects()
  await daemon.ok('queue.cancel', { id: first.replace('task ', '') })
  const other = first === 'task one' ? 'task two' : 'task one'
  await until('it names the other', async () => (await subjects())[0] === other)
  expect(hook.told()).toEqual([`raised queue_age ${first}`])
  const off = { alerts: { webhook, rules: { queue_age_seconds: null } } }
  writeFileSync(join(place.state, 'config.json'), JSON.stringify(off))
  await until('it is over', async () => (await subjects()).length === 0)
  await until('that is told', () => hook.told().includes(`cleared queue_age ${other}`))
})
