import { expect, test } from 'vitest'
import { until } from '../support/processes.ts'
import { overHttp, serving } from './mcp_agent.ts'
import { Raw } from './raw.ts'

const MB = 1024 * 1024
const ASK = { project: 'web', user: 'alice' }

/** A character, and how a client may write it in JSON. */
const SPELLINGS = [
  ['x', 'x'],
  ['\u0007', '\\u0007'],
  ['錠', '\\u9320'],
  ['錠', '錠'],
] as const

const bodyOf = (length: number, spelled: string) =>
  JSON.stringify({ ...ASK, prompt: '' }).replace('"prompt":""', () => {
    return `"prompt":"${spelled.repeat(length)}"`
  })

test('the longest prompt comes in whole, however it is escaped; a longer one never', async () => {
  const { daemon } = await serving()
  for (const [each, spelled] of SPELLINGS) {
    const reply = await daemon.post('queue.add', {}, { body: bodyOf(2 * MB, spelled) })
    expect({ spelled, status: reply.status }).toEqual({ spelled, status: 200 })
    expect(reply.json.task.body === each.repeat(2 * MB), spelled).toBe(true)
    const longer = await daemon.post('queue.add', {}, { body: bodyOf(2 * MB + 1, spelled) })
    expect([longer.status, longer.json.error.code], spelled).toEqual([413, 'too_large'])
  }
  const nul = await daemon.post('queue.add', { ...ASK, prompt: 'a\0b' })
  expect([nul.status, nul.json.error.code]).toEqual([400, 'invalid'])
})

test('what could be no prompt is refused by its length, before it is sent', async () => {
  const { daemon } = await serving()
  const reply = await daemon.post('queue.add', {}, { body: bodyOf(14 * MB, 'x') })
  expect([reply.status, reply.json.error.code]).toEqual([413, 'too_large'])
  const announced = new Raw(daemon.socket()).write(
    'POST /v1/queue.add HTTP/1.1',
    `Host: 127.0.0.1:${daemon.port}`,
    `Authorization: Bearer ${daemon.secret}`,
    'Content-Type: application/json',
    `Content-Length: ${14 * MB}`,
    '',
    '',
  )
  await until('it is refused', () => announced.replies[0]?.status === 413)
  announced.socket.destroy()
})

test('over MCP it comes in whole as well', async () => {
  const { daemon } = await serving()
  const agent = await overHttp(daemon.url, await daemon.agentToken('ada'))
  const prompt = '\u0007'.repeat(2 * MB)
  const { task } = await agent.ok('enqueue_task', { ...ASK, prompt })
  expect((await daemon.ok('task.get', { id: task.id })).body === prompt).toBe(true)
  await agent.refused('too_large', 'enqueue_task', { ...ASK, prompt: `${prompt}x` })
})
