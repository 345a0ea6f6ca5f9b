import { afterEach, describe, expect, test } from 'vitest'
import { plant } from '../../src/core/planted.ts'
import { ROUNDS } from '../support/processes.ts'
import { Broken } from './broken.ts'
import { simulateMemory } from './memory_world.ts'

const MUST_HAPPEN = [
  ...['put ok', 'put clean', 'put open', 'put merged', 'put equal', 'put unknown', 'put fail'],
  ...['delete ok', 'delete conflict', 'resolve ok', 'prune ok', 'settings ok'],
]

describe('agents who write notes on what they read some time ago', () => {
  afterEach(() => plant(undefined))

  test.each([
    { store: 'memory', runs: 4 * ROUNDS, steps: 200 },
    { store: 'sqlite', runs: 2 * ROUNDS, steps: 150 },
    { store: 'postgres', runs: ROUNDS, steps: 50 },
  ] as const)('lose nothing in $runs × $steps steps on $store', async ({ store, runs, steps }) => {
    const counts = new Map<string, number>()
    for (let seed = 1; seed <= runs; seed += 1) {
      for (const [key, n] of await simulateMemory({ seed, steps, store })) {
        counts.set(key, (counts.get(key) ?? 0) + n)
      }
    }
    const wanted = store === 'postgres' ? ['put open'] : MUST_HAPPEN
    expect(wanted.filter((key) => !counts.has(key))).toEqual([])
  })

  test.each(['memory', 'sqlite'] as const)(
    'are caught on %s when the last writer wins (S9)',
    async (store) => {
      plant('S9')
      const asked = simulateMemory({ seed: 1, steps: 100, store })
      const error = await asked.catch((each: unknown) => each)
      expect(error).toBeInstanceOf(Broken)
      expect((error as Broken).promise).toBe('S9')
    },
  )
})
