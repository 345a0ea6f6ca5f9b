import { describe, expect, test } from 'vitest'
import {
  BIN,
  type Ended,
  PARTICIPANT,
  ROUNDS,
  linesOf,
  sandbox,
  type Sandbox,
} from '../support/processes.ts'

const STORES = ['sqlite', 'file'] as const

/** A hundred processes on a machine that does other things too. */
const PATIENT = { timeout: 240_000 }

function on(store: (typeof STORES)[number]): Sandbox {
  const place = sandbox()
  if (store === 'file') place.env['LEASEHOLD_STORE'] = `file:${place.path('files')}`
  return place
}

/** A hundred where there is time; fewer show the same. */
const COMMANDS =
  ROUNDS > 1 ? { sqlite: 100, file: 100, task: 100 } : { sqlite: 20, file: 12, task: 12 }

/** As from a shell: `for i in $(seq 100); do ./bin/leasehold … --agent a$i & done`. */
function atOnce(count: number, place: Sandbox, args: string[]): Promise<Ended[]> {
  const agents = Array.from({ length: count }, (_, i) => `a${i}`)
  const asked = agents.map((agent) => {
    return place.cli([...args, '--agent', agent], { program: [process.execPath, BIN] })
  })
  return Promise.all(asked)
}

function expectOneWinner(ended: Ended[], says: RegExp): void {
  const [winners, losers] = [0, 5].map((code) => ended.filter((each) => each.code === code))
  expect(ended.filter((each) => each.code !== 0 && each.code !== 5)).toEqual([])
  expect([winners!.length, losers!.length]).toEqual([1, ended.length - 1])
  const holder = / for (a\d+),/.exec(winners![0]!.out)?.[1]
  for (const { out, err } of losers!) {
    expect(out).toBe('')
    const [, told, when] = says.exec(err) ?? []
    if (holder !== undefined) expect(told).toBe(holder)
    expect(told, err).toMatch(/^a\d+$/)
    expect(when, err).toMatch(/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d/)
    expect(err).toMatch(/\n {2}next: .+/)
  }
  expect(new Set(losers!.map(({ err }) => says.exec(err)![1])).size).toBe(1)
}

describe('many commands at once', PATIENT, () => {
  for (const store of STORES) {
    test(`one of ${COMMANDS[store]} gets a lock on ${store}, the others are told who`, async () => {
      const place = on(store)
      const ended = await atOnce(COMMANDS[store], place, ['lock', 'acquire', 'build'])
      expectOneWinner(ended, /^error: build is held by (\S+) since \S+ until (\S+)$/m)
      expect(await place.ok(['lock', 'list'])).toMatchObject({ items: [{ name: 'build' }] })
      expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true })
    })
  }

  test('of those who claim a task, one gets it and the others are told who has it', async () => {
    const place = on('sqlite')
    await place.ok(['task', 'add', 'Only one', '--id', '42'])
    const ended = await atOnce(COMMANDS.task, place, ['task', 'claim', '42'])
    expectOneWinner(ended, /^error: Task is locked by (\S+) since \S+ until (\S+)$/m)
    const task = await place.ok(['task', 'show', '42'])
    expect(task).toMatchObject({ status: 'in_progress', attempts: 1 })
  })
})

const CROWD = ROUNDS > 1 ? 50 : 12

/** Starts participants, lets them all begin at once, and returns what each has said. */
async function crowd(place: Sandbox, args: string[], size = CROWD): Promise<Said[][]> {
  const program = [process.execPath, PARTICIPANT]
  const running = Array.from({ length: size }, (_, i) => {
    return place.start(args, { program, env: { LEASEHOLD_AGENT: `p${i}` } })
  })
  await Promise.all(running.map((each) => each.said(/^"ready"$/m)))
  for (const { child } of running) child.stdin!.write('go\n')
  return Promise.all(running.map((each) => linesOf<Said>(each)))
}

interface Said {
  task: string
  fence: number
  refusals: number
}

const TURNS = ROUNDS > 1 ? { sqlite: 40, file: 20 } : { sqlite: 2, file: 1 }
/** A file store writes its whole document with every claim, so it gets fewer. */
const TASKS = ROUNDS > 1 ? { sqlite: 1_000, file: 200 } : { sqlite: 300, file: 100 }

describe.for(STORES)('many processes on %s', PATIENT, (store) => {
  test('take one lock in turns, never two at a time, with fences that only rise', async () => {
    const place = on(store)
    const turns = TURNS[store]
    const said = await crowd(place, ['turns', 'build', `${turns}`, place.path('mark')])
    const fences = said.flat().map(({ fence }) => fence)
    expect(fences).toHaveLength(CROWD * turns)
    expect(new Set(fences).size).toBe(fences.length)
    // Without a single refusal they would not have raced at all.
    expect(said.flat().some(({ refusals }) => refusals > 0)).toBe(true)
    expect(await place.ok(['lock', 'status', 'build'])).toMatchObject({ is_locked: false })
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, problems: [] })
  })

  test(`share ${TASKS[store]} tasks, each claimed exactly once`, async () => {
    const place = on(store)
    await crowd(place, ['add', `${TASKS[store]}`], 1)
    const said = await crowd(place, ['claim'])
    const claimed = said.flat().map(({ task }) => task)
    expect(claimed).toHaveLength(TASKS[store])
    expect(new Set(claimed).size).toBe(claimed.length)
    expect(said.filter((each) => each.length > 0).length).toBeGreaterThan(1)
    expect(await place.ok(['task', 'list', '--ready'])).toEqual({ items: [], next: null })
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, problems: [] })
  })
})
