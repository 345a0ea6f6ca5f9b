import type { AnyRow } from '../../src/core/schema/schema.ts'
import type { Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { overlaps, parseGlob } from '../../src/core/paths/glob.ts'
import { Remembered } from '../../src/stores/writer/remembered.ts'
import { LIMITS } from '../../src/operations/budget.ts'
import { Company, Pace } from '../../src/operations/pace.ts'
import { until } from '../support/processes.ts'
import { type Served, servingPlace, startDaemon } from './serving.ts'

const daemonHere = () => startDaemon(servingPlace())

function listen(daemon: Served, token: string): Socket & { said: string } {
  const socket = Object.assign(daemon.socket(), { said: '' })
  socket.on('error', () => undefined)
  socket.setEncoding('utf8').on('data', (text: string) => (socket.said += text))
  socket.write(
    `GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:${daemon.port}\r\n` +
      `Authorization: Bearer ${token}\r\n\r\n`,
  )
  onTestFinished(() => void socket.destroy())
  return socket
}

describe('a budget that is used up', () => {
  test('lets in no more of that token, and admins as ever', async () => {
    const daemon = await daemonHere()
    const token = await daemon.agentToken('ada')
    const streams = Array.from({ length: LIMITS.streams.max }, () => listen(daemon, token))
    await until('all listen', () => streams.every(({ said }) => said.includes('200 OK')))
    const refused = listen(daemon, token)
    await until('it is refused', () => refused.said.includes('"budget":"streams"'))
    const admin = listen(daemon, daemon.secret)
    await until('an admin listens', () => admin.said.includes('200 OK'))
    // A place that is given back is there for the next.
    streams[0]!.destroy()
    await until('there is room again', async () => {
      const next = listen(daemon, token)
      await until('it is answered', () => next.said.includes('HTTP/1.1'))
      return next.said.includes('200 OK')
    })
  }, 60_000)

  test('is named, with its limit and when to come back; subagents count too', async () => {
    const daemon = await daemonHere()
    const token = await daemon.agentToken('ada')
    const { max } = LIMITS.leases
    const names = (i: number) => Array.from({ length: 100 }, (_, n) => `n${i}-${n}`)
    for (let i = 0; i < max / 100; i += 1) {
      const agent = i % 2 === 0 ? 'ada' : 'ada/sub'
      await daemon.ok('lock.acquire', { names: names(i), agent }, { token })
    }
    const refused = await daemon.post('lock.acquire', { name: 'more' }, { token })
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '2' } })
    expect(refused.json.error).toMatchObject({
      code: 'rate_limited',
      next: expect.stringContaining('Release'),
      details: { budget: 'leases', limit: max, retry_after_seconds: 2, lasting: true },
    })
    await daemon.ok('lock.acquire', { name: 'more', agent: 'bob' })
    await daemon.ok('lock.release', { name: 'n0-0' }, { token })
    await until('it is counted again', async () => {
      return (await daemon.post('lock.acquire', { name: 'another' }, { token })).status === 200
    })
  }, 120_000)
})

test('who asks for many tasks and gets none has used none of what it may hold', async () => {
  const daemon = await daemonHere()
  const token = await daemon.agentToken('ada')
  const asks = (LIMITS.leases.max / 100) * 2
  for (let i = 0; i < asks; i += 1) await daemon.ok('task.claim', { max: 100 }, { token })
  const one = await daemon.post('lock.acquire', { name: 'one' }, { token })
  expect(one.status).toBe(200)
})

test('a check of globs that would take long is refused in time', () => {
  const [one, other] = [parseGlob('*a'.repeat(500)), parseGlob('*b'.repeat(500))]
  const steps = { left: 1_000_000 }
  const all = () => {
    for (let i = 0; i < 1_000; i += 1) overlaps(one, other, steps)
  }
  expect(all).toThrow('would take too long')
  // A path is compared in a few steps, however long the glob is.
  const few = { left: 1_000 }
  expect(overlaps(one, parseGlob('src/aaaa.ts'), few)).toBe(false)
  expect(few.left).toBeGreaterThan(900)
})

test('bodies are not remembered, and rows only up to so many bytes', () => {
  const remembered = new Remembered()
  const row = (body: string) => ({ id: 'x', body }) as unknown as AnyRow
  remembered.set('short', row('b'))
  remembered.set('long', row('b'.repeat(2 * 1024 * 1024)))
  expect(remembered.trim()).toBe(true)
  expect([...remembered.keys()]).toEqual(['short'])
  expect(remembered.trim()).toBe(false)
  for (let i = 0; i < 2_000; i += 1) remembered.set(`${i}`, row('b'.repeat(8_000)))
  remembered.trim()
  expect(remembered.size).toBe(0)
})

test('a token ahead of its share waits while others ask, and not if it is alone', async () => {
  const company = new Company()
  const [greedy, modest] = [new Pace(company), new Pace(company)]
  const ask = async (pace: Pace, ms: number) => {
    const turn = await pace.turn('x')
    turn?.spend(ms)
    turn?.end()
    return pace
  }
  const begun = performance.now()
  for (let i = 0; i < 100; i += 1) await ask(greedy, 300)
  expect(performance.now() - begun).toBeLessThan(1_000)
  await ask(modest, 1)
  await ask(greedy, 300)
  const late = ask(greedy, 300)
  expect(await Promise.race([late, ask(modest, 1)])).toBe(modest)
  expect(await late).toBe(greedy)
})

test('of asks that nobody has timed yet, one at a time is let in beside others', async () => {
  const company = new Company()
  const [greedy, modest] = [new Pace(company), new Pace(company)]
  const others = await modest.turn('y')
  others?.end()
  const first = await greedy.turn('x')
  let letIn = 0
  const rest = Array.from({ length: 30 }, async () => {
    const turn = await greedy.turn('x')
    letIn += 1
    return turn
  })
  company.came(modest)
  expect((await modest.turn('y')) && letIn).toBe(0)
  // It was cheap: as many as take 20 ms may come together.
  first?.spend(1.5)
  first?.end()
  await rest[9]
  expect(letIn).toBe(10)
  for (const each of rest) (await each)?.end()
  expect(letIn).toBe(30)
})
