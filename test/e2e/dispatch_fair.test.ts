import { expect, test } from 'vitest'
import { dispatching, most, script, userOf } from '../support/dispatching.ts'
import { ROUNDS } from '../support/processes.ts'

/** Many more than the others have; every run takes two processes. */
const HEAVY = ROUNDS > 1 ? 60 : 16
/** More than the eight rounds that are looked at, for nobody starts all of them at once. */
const LIGHT = 10
const USERS = ['ada', 'ben', 'cem', 'dan', 'eva'].slice(0, ROUNDS > 1 ? 5 : 3)

/** 1 when all are served alike, 1/n when one has it all (Jain, Chiu and Hawe 1984). */
function jain(shares: number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0)
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b ** 2, 0))
}

test(`one user with ${HEAVY} tasks beside others with ${LIGHT}: all are served alike`, async () => {
  const all = dispatching({
    agents: { tiny: script('say start; sleep 0.03; say end') },
    slots: { max: 3 },
  })
  await all.serve()
  await all.daemon.ok('queue.pause')
  const one = (id: string, user: string) => all.add(id, user)
  for (let i = 0; i < HEAVY; i += 1) await one(`max-${i}`, 'max')
  for (const user of USERS) for (let i = 0; i < LIGHT; i += 1) await one(`${user}-${i}`, user)
  const begun = performance.now()
  await all.daemon.ok('queue.resume')
  await all.seen('end', HEAVY + USERS.length * LIGHT)
  const took_ms = performance.now() - begun
  await all.idle()
  const at_once = most(all.lines(), userOf)
  expect(at_once.all).toBeLessThanOrEqual(3)
  expect(at_once.each).toBe(1)
  // They compete for as long as each of them has something that waits.
  const starts = all.lines('start').map(userOf)
  const everybody = ['max', ...USERS]
  const drained = Math.min(...everybody.map((user) => starts.lastIndexOf(user)))
  const contested = starts.slice(0, drained)
  const counts = everybody.map((user) => contested.filter((each) => each === user).length)
  const { items } = await all.daemon.ok('run.list', { limit: 1000 })
  const runs = new Map(items.map((run: { id: string }) => [run.id, run]))
  const times = everybody.map((user) => {
    const theirs = all
      .lines('start')
      .slice(0, drained)
      .filter((line) => userOf(line) === user)
    // How long the last one takes shows when all have had their turns: nobody can make up for it.
    return theirs.slice(0, -1).reduce((sum, { run }) => sum + lengthOf(runs.get(run)), 0)
  })
  const [by_count, by_time] = [jain(counts), jain(times)]
  const summary = `${starts.length} runs in ${Math.round(took_ms)} ms, ${drained} of them contested`
  const index = `by count ${by_count.toFixed(4)}, by time ${by_time.toFixed(4)}`
  process.stderr.write(`${summary}; Jain index ${index} (${counts.join(' ')})\n`)
  // Eight rounds at least, or it means little. Starts are in the order they were written.
  expect(drained).toBeGreaterThanOrEqual(8 * everybody.length)
  // What start-time fair queueing promises, however long a run takes on a busy machine: while two
  // have something that waits, neither is ahead by more than a run of its own and one of the other.
  const longest = Math.max(...items.map(lengthOf))
  expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(2 * longest)
})

function lengthOf(run: unknown): number {
  const { started_at, ended_at } = run as { started_at: string; ended_at: string }
  return Date.parse(ended_at) - Date.parse(started_at)
}
