import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  alertsNow,
  clearAlert,
  dueAlerts,
  raiseAlert,
  settleAlerts,
  tellAlert,
} from '../../src/core/reasons/alert.ts'
import { Courier } from '../../src/daemon/alerts/courier.ts'
import { type Channels, type Notice, sendersOf } from '../../src/daemon/alerts/sender.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { type Json, servingPlace, startDaemon } from '../doors/serving.ts'
import { MachineSim, openMemory, temporaryFolder, Verbs } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { configure, keeper, receiver } from './alert_receivers.ts'

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
  const hook = await receiver('first')
  const { command, broken, told } = keeper(place)
  configure(place, { webhook: { url: hook.url }, command, rules: lockRules })
  const daemon = await startDaemon(place)
  const lose = (name: string) =>
    daemon.ok('lock.acquire', { names: [name], agent: 'ada', ttl_seconds: 1 })
  await lose('first')
  await until('the command is told', () => told().length === 1)
  expect(hook.posted).toEqual([])
  writeFileSync(broken, '')
  await lose('second')
  await until('the webhook is told', () => hook.posted.length === 1)
  expect(hook.told()).toEqual(['raised lock_expired second'])
  expect(told()).toEqual(['first'])
})

test('a notice that nobody takes is put aside after some tries, and the rest goes on', async () => {
  const hook = await receiver('poison')
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
    await until('the other is told', () => hook.posted.length === i + 1)
  }
  expect(putAside).toEqual([['poison', 'the webhook answered 500']])
  expect(hook.refused()).toBe(12)
  expect(left.size).toBe(0)
})

test('what was put aside is listed with its alert, and tried again when reconfigured', async () => {
  const verbs = new Verbs(openMemory(temporaryFolder(), new MachineSim()))
  const { store } = verbs
  const condition = { key: 'k', rule: 'r', subject: 's', message: 'm', lasts_ms: null }
  const due = (channel: string) =>
    store.read((view) => dueAlerts(view, channel).map(({ state }) => state))
  const tell = (channel: string, why: string | null) =>
    store.write((view) => {
      const [first] = dueAlerts(view, channel)
      tellAlert(view, { ...first!, channel, why }, ['webhook', 'command'])
    })
  const shown = () => store.read((view) => [...alertsNow(view)])
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
  await until(
    'bob waits',
    async () => (await daemon.ok('lock.status', { name: 'a' })).waiters.length > 0,
  )
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
    (await daemon.ok('alert.list')).items.flatMap(({ rule, subject }: Json) =>
      rule === 'queue_age' ? [subject] : [],
    )
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
