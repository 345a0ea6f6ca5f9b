import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as events from '../../src/operations/events.ts'
import { OutputLog } from '../../src/daemon/runner/output_log.ts'
import { readOutput, runFolder, type WhichOutput } from '../../src/machine/run_output.ts'
import {
  callerOf,
  MachineSim,
  openMemory,
  openSqlite,
  temporaryFolder,
  Verbs,
} from '../support/helpers.ts'

const [ada, bob] = [callerOf('ada'), callerOf('bob')]

function begin() {
  const machine = new MachineSim()
  const store = openMemory(temporaryFolder(), machine)
  onTestFinished(() => store.close())
  return { machine, store, verbs: new Verbs(store) }
}

/** Pages from the newest on until there are no more. */
async function allOf<Item>(
  ask: (after?: string) => Promise<{ items: Item[]; next: string | null }>,
) {
  const items: Item[] = []
  let after: string | undefined
  do {
    const page = await ask(after)
    items.push(...page.items)
    after = page.next ?? undefined
  } while (after !== undefined)
  return items
}

test('events are found by type, agent and time, also those that no page has loaded', async () => {
  const { machine, store, verbs } = begin()
  for (let i = 0; i < 300; i += 1) {
    await verbs.take(`lock-${i}`, i % 2 === 0 ? ada : bob, { ttl_ms: 2_000 })
    machine.advance(1_000)
  }
  machine.advance(10_000)
  await verbs.sweep()
  const ask = (input: object) => (after?: string) =>
    call(store, events.list, { limit: 50, ...input, ...(after && { after }) }, ada)
  const expired = await allOf(ask({ type: 'lease.expired' }))
  expect(expired).toHaveLength(300)
  // By whoever ended it, it was bob's.
  expect(await allOf(ask({ type: 'lease.expired', by: 'bob' }))).toHaveLength(150)
  expect(await allOf(ask({ type: 'lease.granted,lease.expired' }))).toHaveLength(600)
  const granted = (await allOf(ask({ type: 'lease.granted' }))).toReversed()
  const [from, to] = [granted[100]!.at, granted[109]!.at]
  const within = await allOf(ask({ type: 'lease.granted', from, to }))
  expect(within.map(({ lock }) => lock)).toEqual(
    Array.from({ length: 10 }, (_, i) => `lock-${109 - i}`),
  )
  const { looked_to } = await call(store, events.list, { limit: 5 }, ada)
  expect(looked_to).not.toBeNull()
})

test.each([
  ['memory', openMemory],
  ['SQLite', openSqlite],
])(
  'of a lock, a task or an agent all is found at once, however much lies behind: %s',
  async (_, open) => {
    const machine = new MachineSim()
    const store = open(temporaryFolder(), machine)
    onTestFinished(() => store.close())
    const verbs = new Verbs(store)
    const odd = 'the "old" one/größer'
    await verbs.add('rare', ada, { id: '7' })
    await verbs.take(odd, bob, { ttl_ms: 2_000 })
    machine.advance(3_000)
    await verbs.sweep()
    for (let i = 0; i < 12; i += 1) {
      await store.write((view) => {
        for (let n = 0; n < 1_000; n += 1)
          view.record('memory.retried', { agent: 'cy' }, { tried: 7 })
      })
    }
    const typesFor = async (input: Record<string, unknown>) => {
      const { items, next } = await call(store, events.list, input, ada)
      expect(next).toBeNull()
      return items.map(({ type }) => type)
    }
    expect(await typesFor({ task_id: '7' })).toEqual(['task.created'])
    expect(await typesFor({ lock: odd })).toEqual(['lease.expired', 'lease.granted'])
    expect(await typesFor({ by: 'bob' })).toEqual(['agent.lost', 'lease.expired', 'lease.granted'])
    expect(await typesFor({ type: 'task,lease.expired' })).toEqual([
      'lease.expired',
      'task.created',
    ])
    expect(await typesFor({ by: 'bob', type: 'lease.expired', lock: odd })).toHaveLength(1)
    expect(await typesFor({ lock: 'never' })).toEqual([])
  },
)

test('what ends while spans are read is found by who asks again from where they end', async () => {
  const { machine, store, verbs } = begin()
  await verbs.take('a', ada, { ttl_ms: 60_000 })
  machine.advance(1_000)
  // The walk over the past is done; the release comes before the look at what lasts.
  let isReleased = false
  const between = Object.create(store) as typeof store
  between.read = async (decide) => {
    if (!isReleased) await verbs.release('a', ada)
    isReleased = true
    machine.advance(1_000)
    return store.read(decide)
  }
  const first = await call(between, events.spans, { since_seconds: 60 }, ada)
  const second = await call(store, events.spans, { from: first.to }, ada)
  const ends = [...first.items, ...second.items].map(({ ending }) => ending)
  expect(ends).toEqual(['released'])
})

test('spans come from the store: ended ones by their end, and those that last', async () => {
  const { machine, store, verbs } = begin()
  const { fence } = await verbs.take('a', ada, { ttl_ms: 60_000 })
  await verbs.wait('a', bob, 't1')
  machine.advance(5_000)
  await verbs.release('a', ada)
  await verbs.wait('a', bob, 't1')
  machine.advance(5_000)
  await verbs.wait('a', ada, 't2')
  machine.advance(5_000)
  const { items, next } = await call(store, events.spans, { since_seconds: 60 }, ada)
  expect(next).toBeNull()
  const lasted = ({ from, to }: (typeof items)[number]) =>
    to === null ? null : Date.parse(to) - Date.parse(from)
  const shown = items.map((span) => [span.kind, span.agent, span.ending, lasted(span)])
  expect(shown).toEqual([
    ['held', 'bob', 'open', null],
    ['waited', 'ada', 'open', null],
    ['waited', 'bob', 'granted', 5_000],
    ['held', 'ada', 'released', 5_000],
  ])
  expect(items.at(-1)).toMatchObject({ lock: 'a', fence })
  const bobs = await call(store, events.spans, { since_seconds: 60, by: 'bob' }, ada)
  expect(bobs.items).toHaveLength(2)
})

test('what a run wrote is read from its first line, and backwards from its last', () => {
  const folder = temporaryFolder()
  const files = runFolder(folder, '1.1')
  mkdirSync(files, { recursive: true })
  const lines = Array.from({ length: 1000 }, (_, i) => `line ${i} – ä\n`)
  writeFileSync(join(files, 'output.log.1'), lines.slice(0, 600).join(''))
  writeFileSync(join(files, 'output.log'), lines.slice(600).join(''))
  const read = (which: WhichOutput) => readOutput(folder, '1.1', which, 1_000)!
  const whole = lines.join('')

  let piece = read({ from: 'first' })
  expect(piece).toMatchObject({
    is_first: true,
    skipped: false,
    bytes_total: Buffer.byteLength(whole),
  })
  let forward = ''
  while (piece.text !== '') {
    forward += piece.text
    piece = read({ after: piece.next })
  }
  expect(forward).toBe(whole)

  piece = read({})
  let backward = piece.text
  expect(backward.endsWith('line 999 – ä\n')).toBe(true)
  while (!piece.is_first) {
    piece = read({ before: piece.begin })
    backward = piece.text + backward
  }
  expect(backward).toBe(whole)

  // Three files' worth of output in two files: the first of them is gone, and that is said.
  const log = new OutputLog(files, 200)
  for (const line of lines.slice(0, 25)) log.write(Buffer.from(line))
  log.close()
  expect(read({ from: 'first' })).toMatchObject({ is_first: true, skipped: true })
})
