import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/stores/writer/store.ts'
import { openAt } from '../faults/postgres_writers.ts'
import { callerOf, expectRefusal, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { ROUNDS, Running, stateOf, until } from '../support/processes.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/test/postgres_participant.mjs', import.meta.url))
const ada = callerOf('ada')
const TASKS = 500 * ROUNDS
/** What the server allows a silent transaction, and some time to notice. */
const STOPPED_MS = 7_000

function begin(url: string, ...args: string[]): Running {
  const env = { ...process.env, LEASEHOLD_STORE: url }
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, ...args], { env })
  onTestFinished(() => void child.kill('SIGKILL'))
  return new Running(child, undefined)
}

async function go(participants: Running[]): Promise<void> {
  for (const each of participants) await each.said(/ready/)
  for (const each of participants) each.child.stdin!.end('go\n')
}

async function fill(store: Store, tasks: number): Promise<void> {
  const verbs = new Verbs(store)
  await Promise.all(Array.from({ length: tasks }, (_, i) => verbs.add(`Task ${i}`, ada)))
}

/** Reads events in pages of any size, and comes back to where it was as a new reader. */
async function readAll(url: string, isOver: () => boolean): Promise<number[]> {
  const seen: number[] = []
  let store = openAt(url)
  for (;;) {
    const over = isOver()
    const page = await store.events(seen.at(-1) ?? 0, 1 + Math.floor(Math.random() * 200))
    seen.push(...page.map((event) => event.position))
    if (over && page.length === 0) break
    if (Math.random() < 0.1) {
      await store.close()
      store = openAt(url)
    }
  }
  await store.close()
  return seen
}

describe('eight processes on one database', () => {
  test(
    `claim ${TASKS} tasks once each, and a reader that resumes misses no event`,
    async () => {
      const url = postgresUrl(temporaryFolder())
      const store = openAt(url)
      await fill(store, TASKS)
      const processes = Array.from({ length: 8 }, () => begin(url, 'claim', '4'))
      await go(processes)
      let over = false
      const reading = readAll(url, () => over)
      const told = await Promise.all(processes.map((each) => each.ended))
      over = true
      expect(told.map(({ code, err }) => `${code}${err}`)).toEqual(told.map(() => '0'))
      const claims = told.flatMap(({ out }) =>
        out.split('\n').filter((line) => /^\d+ \d+$/.test(line)),
      )
      const [ids, fences] = [0, 1].map((i) => claims.map((line) => Number(line.split(' ')[i])))
      expect(claims).toHaveLength(TASKS)
      expect(new Set(ids).size).toBe(TASKS)
      expect(new Set(fences).size).toBe(TASKS)
      const positions = await reading
      const { position } = await store.head()
      expect(positions).toEqual(Array.from({ length: position }, (_, i) => i + 1))
      await store.close()
    },
    120_000 * ROUNDS,
  )
})

describe('a process that is stopped in the middle of a transaction', () => {
  test('holds up the others for a few seconds, and writes nothing late', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = new Verbs(openAt(url))
    const stopped = begin(url, 'stop', 'a')
    await go([stopped])
    await until('it has stopped', () => stateOf(stopped.pid) === 'T')
    const began = performance.now()
    const lease = await verbs.take('a', ada)
    expect(performance.now() - began).toBeLessThan(STOPPED_MS)
    stopped.kill('SIGCONT')
    const { out } = await stopped.ended
    expect(out).toContain('a is held by ada')
    await verbs.renew('a', ada, lease.fence)
    await expectRefusal(verbs.take('a', callerOf('bob')), 'held')
    expect(await verbs.eventTypes()).toEqual(['lease.granted'])
    await verbs.store.close()
  }, 60_000)
})
