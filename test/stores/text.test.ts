import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { textFault } from '../../src/core/text.ts'
import { serve } from '../../src/daemon/serve.ts'
import { connect } from '../../src/index.ts'
import { call } from '../../src/operations/call.ts'
import { acquire } from '../../src/operations/locks.ts'
import { backupStore, checkStore, restoreStore } from '../../src/stores/care.ts'
import { copyStore } from '../../src/stores/copy/copy.ts'
import { folderOf, openStore } from '../../src/stores/open.ts'
import { readFileSync } from 'node:fs'
import { send, type Json } from '../doors/serving.ts'
import { callerOf } from '../support/helpers.ts'
import { sandbox } from '../support/processes.ts'
import { type Kind, placeFor } from './copy_scene.ts'

const RUNS = process.env['FAULTS'] === 'long' ? 400 : 40

/** Text of every kind that somebody may send, whole characters or not. */
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.integer({ min: 0, max: 0xff_ff }), { maxLength: 8 }).map((units) => {
    return String.fromCharCode(...units)
  }),
  fc.constantFrom('l\ud800x', '\udfff', 'a\0b', '\0', '\ufffe', '\uffff', '\ufffd', '🦊'),
  fc.constantFrom('é', 'e\u0301', 'ﬀ', 'Å', '\u2028', '\u200f', 'İ', '\ud83e', '__proto__'),
  fc.constantFrom('x'.repeat(3_000), '🦊'.repeat(300), `${'x'.repeat(255)}🦊`),
)

type Ask = (name: string, input: Json) => Promise<Json>

/** Where a text may stand; each is asked with it through every door. */
const PLACES: [string, string, (text: string) => Json][] = [
  ['lock.acquire', 'acquire_lock', (name) => ({ name, agent: 'ada' })],
  ['lock.acquire', 'acquire_lock', (agent) => ({ name: 'n', agent, takeover: true })],
  ['lock.acquire', 'acquire_lock', (request_id) => ({ name: 'm', request_id, agent: 'ada' })],
  ['task.create', 'create_task', (body) => ({ title: 't', body })],
  ['task.create', 'create_task', (title) => ({ title, labels: [title], user: title })],
  ['task.create', 'create_task', (key) => ({ title: 't', metadata: { [key]: [[key]] } })],
  ['reserve.add', 'reserve_paths', (path) => ({ paths: [path], project: 'p', agent: 'ada' })],
]

const EXPECTED = new Set(['invalid', 'too_large', 'held', 'conflict', 'lease_expired'])

describe.each<Kind>(['sqlite', 'file', 'postgres'])('on a %s store', (kind) => {
  test('text is kept as it was given or refused, and the store stays sound', async () => {
    const place = placeFor(kind)
    const served = await serve(place, 0, 'test')
    const token = readFileSync(join(folderOf(place), 'admin.token'), 'utf8').trim()
    const doors = await doorsOf(served.url, token)
    await fc.assert(
      fc.asyncProperty(texts, fc.constantFrom(...doors), async (text, [door, ask]) => {
        for (const [name, tool, inputOf] of PLACES) {
          const input = inputOf(text)
          const reply = await ask(door === 'MCP' ? tool : name, input)
          const what = `${door} ${name} ${JSON.stringify(input).slice(0, 200)}`
          const code = reply?.error?.code as string | undefined
          if (code !== undefined) expect(EXPECTED, what).toContain(code)
          if (textFault(input)) expect(code, what).toBe('invalid')
          else if (code === undefined && door !== 'MCP') expectKept(input, reply, what)
        }
      }),
      { numRuns: RUNS },
    )
    await served.stop()
    await expectSound(place, kind)
  }, 60_000)

  test('what gets past the doors is recorded as it is kept', async () => {
    const place = placeFor(kind)
    const store = openStore(place)
    const data = { half: '\ud800', nul: 'a\0b', 'key\udfff': ['\udc00'], spelled: '\\ud800' }
    await store.write((view) => {
      view.record('store.pruned', { agent: 'ada', lock: 'l' }, {})
      view.record('store.pruned', { agent: 'a\ud800', lock: 'l\0x' }, data as object)
    })
    const events = await store.events(0, 10)
    expect(events.at(-1)).toMatchObject({
      agent: 'a\ufffd',
      lock: 'l\ufffdx',
      data: { half: '\ufffd', nul: 'a\ufffdb', 'key\ufffd': ['\ufffd'], spelled: '\\ud800' },
    })
    // Doors that take an agent's id from elsewhere are checked where all of them meet.
    for (const agent of ['a\ud800', 'a\0', 'a\nb']) {
      const asked = call(store, acquire, { name: 'x' }, callerOf(agent))
      await expect(asked).rejects.toMatchObject({ code: 'invalid' })
    }
    await store.close()
    await expectSound(place, kind)
  })
})

test('the command line and its configuration refuse the same', async () => {
  const place = sandbox()
  const half = '{"a":"\\ud800"}'
  await place.refused(['task', 'add', 'x', '--metadata', half], 'invalid', 2)
  await place.refused(['task', 'add', 'x', '--body', '-'], 'invalid', 2, { input: 'a\0b' })
  await place.ok(['lock', 'acquire', 'l\ud800x', '--agent', 'a\udfff'])
  expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true })
})

async function doorsOf(url: string, token: string): Promise<[string, Ask][]> {
  const post: Ask = async (name, input) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(input)
    return (await send(url, `/v1/${name}`, { method: 'POST', token, headers, body })).json
  }
  const client = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  onTestFinished(() => client.close())
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit }))
  const tool: Ask = async (name, input) => {
    const { structuredContent } = await client.callTool({ name, arguments: input })
    return structuredContent
  }
  const sdk = await connect({ url, token })
  onTestFinished(() => sdk.close())
  const typed: Ask = async (name, { agent, ...input }) => {
    const [noun, verb] = name.split('.') as [string, string]
    const calls = sdk as unknown as Record<string, Record<string, Ask>>
    const ask = calls[noun]![verb]! as (input: Json, how: Json) => Promise<Json>
    return ask(input, { agent }).catch((error: Json) => ({ error: { code: error.code } }))
  }
  return [
    ['HTTP', post],
    ['MCP', tool],
    ['SDK', typed],
  ]
}

/** Every field of the input that the answer has too is the same there. */
function expectKept(input: Json, reply: Json, what: string): void {
  const { name, title, body, metadata } = input
  for (const [field, value] of Object.entries({ name, title, body, metadata })) {
    if (value !== undefined && field in reply) expect(reply[field], what).toEqual(value)
  }
}

async function expectSound(place: ReturnType<typeof placeFor>, kind: Kind): Promise<void> {
  expect(await problemsOf(place)).toEqual([])
  if (kind !== 'postgres') {
    const { backup } = await backupStore(place, undefined, new Date())
    expect(await restoreStore(place, backup)).toMatchObject({ ok: true, problems: [] })
  }
  for (const other of ['sqlite', 'file', 'postgres'] as const) {
    const copy = placeFor(other)
    await copyStore(place, copy, { keep_source: true })
    expect(await problemsOf(copy), `copied to ${other}`).toEqual([])
  }
}

/** The servers of tests do not sync, which a check tells too. */
async function problemsOf(place: ReturnType<typeof placeFor>): Promise<string[]> {
  const { problems } = await checkStore(place)
  return problems.filter((problem) => !problem.includes('fsync'))
}
