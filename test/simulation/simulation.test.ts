import { describe, expect, test } from 'vitest'
import { simulate } from './simulate.ts'

/** Fixed seeds, so that a failure here is a failure everywhere; `npm run sim` goes further. */
const RUNS = [
  { store: 'memory', runs: 8, steps: 700 },
  { store: 'forgetful', runs: 3, steps: 500 },
  { store: 'sqlite', runs: 3, steps: 300 },
] as const

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
  'wait deadlock',
  'writeLate fence_stale',
  'edit ok',
  'edit conflict',
  'startCommand ok',
]

describe.each(RUNS)('agents that crash, sleep and repeat themselves', ({ store, runs, steps }) => {
  test(`break no promise in ${runs} × ${steps} steps on ${store}`, async () => {
    const counts = new Map<string, number>()
    for (let seed = 1; seed <= runs; seed += 1) {
      for (const [key, n] of await simulate({ seed, steps, store })) {
        counts.set(key, (counts.get(key) ?? 0) + n)
      }
    }
    expect(MUST_HAPPEN.filter((key) => !counts.has(key))).toEqual([])
  })
})
