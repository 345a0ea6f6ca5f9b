import { describe, expect, test } from 'vitest'
import { connect } from '../../src/index.ts'
import { call } from '../../src/operations/call.ts'
import { put } from '../../src/operations/memory.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { overHttp, overStdio } from '../doors/mcp_agent.ts'
import { type Kind, placeOn, storeOf } from '../doors/parity_doors.ts'
import { finish, type Json, startDaemon } from '../doors/serving.ts'
import { callerOf } from '../support/helpers.ts'
import { memoryFaults } from '../support/memory_check.ts'
import { MemoryVerbs } from '../support/memory_verbs.ts'
import { TEST_CLI } from '../support/processes.ts'
import { lookInto } from '../simulation/queue_look.ts'
import { Random } from '../simulation/random.ts'

const LONG = process.env['FAULTS'] === 'long'
/** R32 must hold in a thousand rounds; every run of the tests shows some of them. */
const ROUNDS = LONG ? 1_000 : 60
/** A command is a process to start: few of them keep the test short. */
const COMMANDS = 0.1
const PATIENCE_MS = LONG ? 900_000 : 120_000

type Writer = (key: string, content: string) => Promise<Json>

/** A daemon with a store, and a writer for every door, each an agent of its own. */
async function doorsOn(kind: Kind, plant?: string) {
  const place = placeOn(kind)
  const program = plant === undefined ? undefined : [process.execPath, TEST_CLI]
  const env = { LEASEHOLD_PLANT: plant }
  const daemon = await startDaemon(place, { ...(program && { program }), env })
  const agents = ['http', 'sdk', 'mcp', 'stdio', 'direct', 'command'] as const
  const tokens = new Map<string, string>()
  for (const each of agents.slice(0, 3)) tokens.set(each, await daemon.agentToken(each))
  const store = storeOf(place)
  const token = (of: string) => tokens.get(of)!
  const client = await connect({ url: daemon.url, token: token('sdk') })
  const mcp = await overHttp(daemon.url, token('mcp'))
  const stdio = await overStdio(place, { flags: ['--agent', 'stdio'] })
  const writers: Record<(typeof agents)[number], Writer> = {
    http: (key, content) => daemon.ok('memory.put', { key, content }, { token: token('http') }),
    sdk: (key, content) => client.memory.put({ key, content }),
    mcp: (key, content) => mcp.ok('memory_put', { key, content }),
    stdio: (key, content) => stdio.ok('memory_put', { key, content }),
    // Past the daemon, as a command in a sandbox would: two processes write one store.
    direct: (key, content) => call(store, put, { key, content }, callerOf('direct')),
    command: (key, content) => place.ok(['memory', 'put', '--agent', 'command', key, content]),
  }
  const close = async () => {
    await client.close()
    await finish(place)
  }
  return { writers, store, close }
}

/** One round: two who write at the same instant, through two doors. */
async function race(writers: Record<string, Writer>, random: Random, key: string) {
  const names = Object.keys(writers).filter((each) => each !== 'command')
  const [one, other] = random.some(names, 2) as [string, string]
  const second = 'command' in writers && random.chance(COMMANDS) ? 'command' : other
  const pair = random.chance(0.5) ? [one, second] : [second, one]
  const replies = await Promise.all(pair.map((name) => writers[name]!(key, `said by ${name}`)))
  return { pair, replies }
}

async function expectBothKept(store: Store, random: Random, writers: Record<string, Writer>) {
  const memory = new MemoryVerbs(store)
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = `k${round}`
    const { pair, replies } = await race(writers, random, key)
    const [first, told] = replies.toSorted((a: Json, b: Json) => a.version - b.version)
    expect([first.version, told.version], key).toEqual([1, 2])
    expect(first.conflict ?? null, key).toBeNull()
    expect(told.conflict, key).toMatchObject({ status: 'open', ours: 1, theirs: 2 })
    const texts = await memory.texts(key)
    expect(new Set(texts), key).toEqual(new Set(pair.map((name) => `said by ${name}`)))
    expect(told.conflict.with.content, key).toBe(texts[0])
    expect(await memory.open(key), key).toHaveLength(1)
  }
  expect(await store.read((view) => memoryFaults(lookInto(view)))).toEqual([])
  const open = await store.read((view) => [...view.scan('conflicts', 'open')])
  expect(open).toHaveLength(ROUNDS)
}

describe('two agents who say different things at the same instant', () => {
  for (const kind of ['sqlite', 'postgres'] as const) {
    const name = `both are kept and one is told, ${ROUNDS} times through different doors on ${kind}`
    test(
      name,
      async () => {
        const { writers, store, close } = await doorsOn(kind)
        await expectBothKept(store, new Random(7), writers).finally(close)
      },
      PATIENCE_MS,
    )
  }

  test('are seen to lose one when the last writer wins (S9)', async () => {
    const { writers, store, close } = await doorsOn('sqlite', 'S9')
    const { http, sdk } = writers
    const asked = expectBothKept(store, new Random(7), { http, sdk })
    await expect(asked.finally(close)).rejects.toThrow('k0: expected null to match object')
  })
})
