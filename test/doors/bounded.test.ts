import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseJson } from '../../src/doors/http/json_shape.ts'
import { Sandbox } from '../support/processes.ts'
import { finish, type Json, type Reply, send, type Served, startDaemon } from './serving.ts'

/**
 * R49: nothing is worked on before it is charged and bounded. The minute of one token at its worst,
 * with all of this at once, is in faults/worst_token.
 */
const place = new Sandbox()
let daemon: Served
let token: string

const TASKS = 40
const METADATA = { text: 'm'.repeat(300_000) }

beforeAll(async () => {
  daemon = await startDaemon(place)
  token = await daemon.agentToken('mallory')
  for (let i = 0; i < TASKS; i += 1) {
    await daemon.ok('task.create', { id: `heavy-${i}`, title: 't', metadata: METADATA })
  }
})

afterAll(async () => {
  await finish(place)
  await place.close()
})

const post = (path: string, body: string): Promise<Reply> => {
  const accept = 'application/json, text/event-stream'
  const headers = { 'content-type': 'application/json', accept }
  return send(daemon.url, path, { method: 'POST', headers, token, body })
}

const memoryMb = () =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${daemon.running.pid}/status`, 'utf8'))![1]) /
  1024

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
const called = (name: string, given: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${given}}}`

describe('what is sent', () => {
  test('is refused in a few words where it is far too much, and not looked at', async () => {
    const keys = (n: number) => Array.from({ length: n }, (_, i) => `"unknown-${i}":1`).join()
    const labels = JSON.stringify(Array.from({ length: 150_000 }, () => 'l'))
    const inputs = [
      `{${keys(90_000)}}`,
      `{${keys(2_000)}}`,
      `{"title":"t","labels":${labels}}`,
      `{"title":"t","labels":${JSON.stringify(Array.from({ length: 5_000 }, () => 1))}}`,
      `{"title":"t","metadata":${deep(100_000)}}`,
    ]
    for (const input of inputs) {
      for (const [path, body] of [
        ['/v1/task.create', input],
        ['/mcp', called('create_task', input)],
      ] as const) {
        const what = `${path} ${body.slice(0, 120)}`
        const { text } = await post(path, body)
        expect(text, what).toMatch(/"code":"(?:invalid|too_large)"/)
        expect(text.length, what).toBeLessThan(3_000)
      }
    }
  })

  test('is counted in one pass, whatever its texts hold', () => {
    const texts = [String.raw`[[[,,,"\\`, '\\'.repeat(30_000), '[,'.repeat(30_000)]
    const text = JSON.stringify([{ a: texts[0] }, ...texts.slice(1)])
    expect(parseJson(text)).toHaveLength(3)
    const bounded = (bad: string) => () => parseJson(bad)
    expect(bounded(deep(65))).toThrow('64 levels')
    expect(bounded(deep(1_000_000))).toThrow('64 levels')
    expect(bounded(`[${'1,'.repeat(10_001)}1]`)).toThrow('10000 values')
    expect(bounded(`[${'{},'.repeat(10_000)}1]`)).toThrow('10000 values')
    expect(bounded('{"a": "')).toThrow('not JSON')
  })
})

describe('what is answered', () => {
  test('is a page by its bytes, and all of it page by page', async () => {
    const ids: string[] = []
    let after: string | undefined
    for (let pages = 0; pages === 0 || after; pages += 1) {
      const { status, text, json } = await post(
        '/v1/task.list',
        JSON.stringify({ limit: 1000, ...(after && { after }) }),
      )
      expect(status).toBe(200)
      expect(text.length).toBeLessThan(2 * 1024 * 1024)
      ids.push(...(json.items as Json[]).map(({ id }) => id as string))
      after = json.next as string | undefined
    }
    expect(new Set(ids)).toEqual(new Set(Array.from({ length: TASKS }, (_, i) => `heavy-${i}`)))
    expect(ids).toHaveLength(TASKS)
    const { text } = await post('/v1/task.list', JSON.stringify({ limit: 1000, ready: true }))
    expect(text.length).toBeLessThan(2 * 1024 * 1024)
  })

  test('counts for each part of a batch, and ends where the budget does', async () => {
    const call = JSON.parse(called('list_tasks', '{"limit":1000}')) as object
    const batch = Array.from({ length: 100 }, (_, id) => ({ ...call, id }))
    const { text } = await post('/mcp', JSON.stringify(batch))
    // Of answers, or of time: where the machine is busy, most parts come too late for that.
    const refused = [...text.matchAll(/"budget":"(?:bytes_under_way|time)"/g)].length
    expect(refused).toBeGreaterThan(50)
    expect(refused).toBeLessThan(100)
    expect(memoryMb()).toBeLessThan(400)
    // All of it was given back.
    expect((await post('/v1/task.list', '{}')).status).toBe(200)
  })
})
