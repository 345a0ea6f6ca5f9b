import { afterEach, describe, expect, test } from 'vitest'
import { ROUNDS } from '../support/processes.ts'
import { FairWorld, jain, tasksOf, worstError } from './fair_world.ts'
import { Random } from './random.ts'

const worlds: FairWorld[] = []

async function begin(options: ConstructorParameters<typeof FairWorld>[0]): Promise<FairWorld> {
  const world = new FairWorld(options)
  worlds.push(world)
  await world.begin()
  return world
}

const names = (count: number, prefix = 'u') =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`)
const OFF = { user_max: null }
/** Of one user, who is served a few dozen of them before the others have had all of theirs. */
const WHALE = ROUNDS > 1 ? 10_000 : 1_000

/** Shown with every run, so that a change of the rules shows in numbers. */
function say(what: string, numbers: Record<string, number>): void {
  const said = Object.entries(numbers).map(([name, n]) => `${name} ${n.toFixed(4)}`)
  process.stdout.write(`fairness: ${what}: ${said.join(', ')}\n`)
}

/** R21, L3: over the rules and SQLite, on virtual time, with seeds that are fixed. */
describe('the queue is fair', () => {
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.store.close()
  })

  for (const limit of ['off', 'on'] as const) {
    test(`to 50 users beside one with ${WHALE} tasks, the limit per user ${limit}`, async () => {
      const random = new Random(1)
      const world = await begin({ slots: 4, length: () => 10_000 + random.below(40_000) })
      if (limit === 'off') await world.verbs.settings(OFF)
      const users = names(50)
      await world.enqueue(tasksOf('whale', WHALE))
      for (const user of users) await world.enqueue(tasksOf(user, 12))
      const last = new Set(users.map((user) => `${user}-11`))
      await world.run(() => last.has(world.starts.at(-1)!.task))
      const index = jain(world.serviceOf(['whale', ...users]))
      say(`a whale among 50, limit ${limit}`, { jain: index, starts: world.starts.length })
      expect(index).toBeGreaterThanOrEqual(0.98)
    })
  }

  test('by weight, within 5 %', async () => {
    const weights = [1, 1, 2, 3, 5]
    const random = new Random(2)
    const world = await begin({ slots: 8, length: () => 5_000 + random.below(20_000) })
    const users = names(weights.length)
    const shares = users.map((user, i) => [user, { weight: weights[i]!, max: null }] as const)
    await world.verbs.settings({ ...OFF, users: new Map(shares) })
    for (const user of users) await world.enqueue(tasksOf(user, 500))
    await world.run(() => world.starts.length >= 900)
    const error = worstError(world.serviceOf(users), weights)
    say('weights 1, 1, 2, 3, 5', { error })
    expect(error).toBeLessThan(0.05)
  })

  /**
   * The bound: below its fair share, whoever comes is served next, so it waits for one slot at
   * most. That is the longest run, if all slots began one at the same moment.
   */
  test('to a user that comes now and then, who waits one run at most', async () => {
    const random = new Random(3)
    const longest_ms = 60_000
    const length = (user: string | null) =>
      user === 'trickle' ? 2_000 : 20_000 + random.below(longest_ms - 20_000)
    const world = await begin({ slots: 4, length: (task) => length(task.user) })
    for (const user of names(10)) await world.enqueue(tasksOf(user, 60))
    for (let i = 0; i < 40; i += 1) {
      world.arrive(world.now_ms + 5_000 + i * 97_000, { id: `trickle-${i}`, user: 'trickle' })
    }
    await world.run(() => world.startsOf('trickle').length === 40)
    const waits = world.startsOf('trickle').map(({ waited_ms }) => waited_ms)
    const mean_s = waits.reduce((a, b) => a + b, 0) / waits.length / 1000
    say('a trickle', { longest_s: Math.max(...waits) / 1000, mean_s })
    expect(waits).toHaveLength(40)
    expect(Math.max(...waits)).toBeLessThanOrEqual(longest_ms)
  })

  test('to one whose tasks are in one project, beside one who splits them', async () => {
    const projects = names(10, 'p')
    const random = new Random(4)
    const length = () => 5_000 + random.below(20_000)
    const world = await begin({ slots: 3, length, projects: [...projects, 'web'] })
    await world.verbs.settings(OFF)
    await world.enqueue(tasksOf('one', 300))
    await world.enqueue(
      tasksOf('split', 300, (i) => ({ project: projects[i % 10]!, group: `g${i % 7}` })),
    )
    await world.run(() => world.starts.length >= 400)
    const error = worstError(world.serviceOf(['one', 'split']), [1, 1])
    say('split over projects and groups', { error })
    expect(error).toBeLessThan(0.05)
  })

  test('to one in one group, beside one who splits, where their project is full', async () => {
    const random = new Random(5)
    const world = await begin({ slots: 4, length: () => 5_000 + random.below(20_000) })
    await world.verbs.settings({ ...OFF, limits: new Map([['project:web', 2]]) })
    await world.enqueue(tasksOf('one', 300))
    await world.enqueue(tasksOf('split', 300, (i) => ({ group: `g${i % 100}` })))
    await world.run(() => world.starts.length >= 200)
    const error = worstError(world.serviceOf(['one', 'split']), [1, 1])
    say('split over groups of a full project', { error })
    expect(error).toBeLessThan(0.05)
  })

  for (const slots of [1, 4]) {
    test(`in time, not in count, when runs differ in length, with ${slots} slots`, async () => {
      const random = new Random(6)
      const lengths: Record<string, () => number> = {
        short: () => 4_000,
        long: () => 90_000,
        mixed: () => (random.chance(0.5) ? 2_000 : 80_000),
        wild: () => (random.chance(0.9) ? 1_000 : 200_000),
        even: () => 30_000,
      }
      const world = await begin({ slots, length: (task) => lengths[task.user!]!() })
      await world.verbs.settings(OFF)
      const users = Object.keys(lengths)
      const counts = { short: 700, long: 60, mixed: 150, wild: 400, even: 120 }
      for (const user of users) await world.enqueue(tasksOf(user, counts[user as 'short']))
      const until_ms = world.now_ms + 8_000_000 / slots
      await world.run(() => world.now_ms >= until_ms)
      const got = world.serviceOf(users)
      const index = jain(got)
      say(`lengths differ, ${slots} slots`, {
        jain: index,
        error: worstError(got, [1, 1, 1, 1, 1]),
        starts_short: world.startsOf('short').length,
        starts_long: world.startsOf('long').length,
      })
      expect(index).toBeGreaterThanOrEqual(0.98)
      const ratio = world.startsOf('short').length / world.startsOf('long').length
      expect(ratio).toBeGreaterThan(10)
    })
  }

  test('to others beside high priority, which has three of four contested starts', async () => {
    const random = new Random(7)
    const world = await begin({ slots: 2, length: () => 5_000 + random.below(20_000) })
    await world.verbs.settings(OFF)
    const users = names(5)
    await world.enqueue(tasksOf('flood', 600, () => ({ priority: 9 })))
    for (const user of users) await world.enqueue(tasksOf(user, 100))
    await world.run(() => world.starts.length >= 600)
    const contested = world.starts.filter((start) => start.contested)
    const part = contested.filter((start) => start.high).length / contested.length
    const index = jain(world.serviceOf(users))
    say('a flood of high priority', { part, jain_of_others: index })
    expect(world.starts[0]).toMatchObject({ high: true })
    expect(part).toBeGreaterThan(0.74)
    expect(part).toBeLessThanOrEqual(0.75)
    expect(index).toBeGreaterThanOrEqual(0.98)
  })

  test('to others beside high priority also by weight and in time', async () => {
    const lengths: Record<string, number> = {
      flood: 10_000,
      short: 5_000,
      long: 40_000,
      heavy: 10_000,
    }
    const world = await begin({ slots: 1, length: (task) => lengths[task.user!]! })
    const users = new Map([['heavy', { weight: 3, max: null }]])
    await world.verbs.settings({ ...OFF, users })
    await world.enqueue(tasksOf('flood', 900, () => ({ priority: 9 })))
    for (const user of ['short', 'long', 'heavy']) await world.enqueue(tasksOf(user, 300))
    await world.run(() => world.starts.length >= 900)
    const error = worstError(world.serviceOf(['short', 'long', 'heavy']), [1, 1, 3])
    say('others beside a flood, weights 1, 1, 3', { error })
    expect(error).toBeLessThan(0.1)
  })

  test('to everybody in the end: whatever waits, runs', async () => {
    const random = new Random(8)
    const world = await begin({ slots: 3, length: () => 1_000 + random.below(30_000) })
    for (const user of names(20)) {
      await world.enqueue(tasksOf(user, 10, () => ({ priority: random.below(10) })))
    }
    await world.run(() => false)
    expect(world.starts).toHaveLength(200)
  })
})
