import { describe, expect, test } from 'vitest'
import { ROUNDS } from '../support/processes.ts'
import { type Plan, simulate } from './simulate.ts'

/**
 * Fixed seeds, so that a failure here is a failure everywhere; `npm run sim` goes further. Where
 * rows are not in memory, two that together meet all that can happen do, unless there is time.
 */
const RUNS: (Pick<Plan, 'store' | 'steps'> & { seeds: number[] })[] = [
  { store: 'memory', seeds: [1, 2, 3, 4, 5, 6, 7, 8], steps: 700 },
  ROUNDS > 1
    ? { store: 'sqlite', seeds: [1, 2, 3], steps: 400 }
    : { store: 'sqlite', seeds: [5, 24], steps: 300 },
  ROUNDS > 1
    ? { store: 'postgres', seeds: [2, 3], steps: 400 }
    : { store: 'postgres', seeds: [8, 24], steps: 250 },
]

/** A simulation in which nothing is ever refused, lost or granted would prove nothing. */
const MUST_HAPPEN = [
  'acquire ok',
  'acquire held',
  'acquire unknown',
  'claim ok',
  'claim held',
  'claimNext ok',
  'finish ok',
  'finish fence_stale',
  'finish lease_expired',
  'renew ok',
  'renew lease_expired',
  'release ok',
  'handOff ok',
  'wait ok',
  'writeLate fence_stale',
  'edit ok',
  'edit conflict',
  'startCommand ok',
  'enqueue ok',
  'register ok',
  'dispatch ok',
  'startRun ok',
  'finishRun ok',
  'claimQueued ok',
  'claimQueued held',
  'cancel ok',
  'editQueued ok',
  'reserve ok',
  'reserve held',
  'touch ok',
  'touch held',
  'touch lease_expired',
  'releasePaths ok',
]

/** Rarer: only the longest runs are sure to come upon it. */
const MUST_HAPPEN_ONCE = [
  'wait deadlock',
  'dispatch unknown',
  'startRun illegal_move',
  'startRun fence_stale',
  'startRun lease_expired',
  'finishRun illegal_move',
  'finishRun fence_stale',
  'moveRun ok',
  'renewRun ok',
  'cancel forbidden',
  'retry ok',
  'releaseUser ok',
  'cleanUp ok',
]

describe.each(RUNS)('agents on $store that crash, sleep and repeat', ({ store, seeds, steps }) => {
  const counts = new Map<string, number>()

  test.each(seeds)(`break no promise in ${steps} steps (seed %i)`, async (seed) => {
    const happened = await simulate({ seed, steps, store })
    expect(happened.size).toBeGreaterThan(0)
    for (const [key, n] of happened) counts.set(key, (counts.get(key) ?? 0) + n)
  })

  test('have met all that can happen to them', () => {
    const wanted = [...MUST_HAPPEN, ...(store === 'memory' ? MUST_HAPPEN_ONCE : [])]
    expect(wanted.filter((key) => !counts.has(key))).toEqual([])
  })
})
