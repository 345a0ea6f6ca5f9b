import { expect, onTestFinished, test } from 'vitest'
import { Refusal } from '../../src/core/refusal.ts'
import { Fences } from '../../src/doors/mcp/fences.ts'
import { call } from '../../src/operations/call.ts'
import * as locks from '../../src/operations/locks.ts'
import { callerOf, MachineSim, openSqlite, temporaryFolder } from '../support/helpers.ts'

const TTL_MS = 1_000
const SILENCE_MS = 1_200

/**
 * An agent at the end of a pipe, with the memory for fences that `leasehold mcp` keeps for it. The
 * store is in trouble for its first renewals.
 */
async function begin(troubles = 0) {
  // Its clock is moved by hand, in step with the one that the renewals go by.
  const machine = new MachineSim()
  const store = openSqlite(temporaryFolder(), machine)
  onTestFinished(() => store.close())
  let told_ms = performance.now()
  const inStep = () => {
    const now_ms = performance.now()
    machine.advance(Math.floor(now_ms - told_ms))
    told_ms += Math.floor(now_ms - told_ms)
  }
  const status = async (name: string) => {
    inStep()
    return call(store, locks.lockStatus, { name }, callerOf('ada'))
  }
  let renewals = 0
  const fences = new Fences(
    {
      expiry: async ({ name }) => {
        const { lock_expires_at } = await status(name)
        return lock_expires_at === null ? null : Date.parse(lock_expires_at)
      },
      renew: ({ agent, name, fence }) => {
        inStep()
        renewals += 1
        if (renewals <= troubles) return Promise.reject(new Refusal('unavailable', 'Disk full'))
        return call(store, locks.renew, { name, fence }, callerOf(agent))
      },
    },
    SILENCE_MS,
  )
  onTestFinished(() => fences.close())
  const acquire = async (agent: string, name: string) => {
    const end = fences.begin(agent)
    inStep()
    const input = { name, ttl_seconds: TTL_MS / 1000 }
    const lease = await call(store, locks.acquire, input, callerOf(agent))
    fences.learn(agent, locks.acquire, input, lease)
    end()
    return lease as locks.ShownLease
  }
  const isHeld = async (name: string) => (await status(name)).is_locked
  return { acquire, fences, isHeld, status, store, renewals: () => renewals }
}

test('a lock is renewed while its agent shows life, and runs out if forgotten', async () => {
  const { acquire, fences, isHeld, renewals } = await begin()
  const begun_ms = performance.now()
  await acquire('ada', 'x')
  await acquire('ada/sub', 'nested')
  await expect.poll(() => renewals()).toBeGreaterThan(2)
  // A subagent's call speaks for its parent; the parent's does not speak for a subagent.
  while (performance.now() - begun_ms < SILENCE_MS + TTL_MS) {
    fences.begin('ada/sub')()
    expect(await isHeld('x')).toBe(true)
    await new Promise((resolve) => void setImmediate(resolve))
  }
  await expect.poll(() => isHeld('x')).toBe(false)
  await expect.poll(() => isHeld('nested')).toBe(false)
  expect(fences.of('ada', 'x'), 'its fence is kept, to be refused').toBeDefined()
})

test('a call that waits, and renewals by hooks of the same agent, are signs of life', async () => {
  const { acquire, fences, status, isHeld, store } = await begin()
  const { fence } = await acquire('ada', 'x')
  const end = fences.begin('ada')
  const from_ms = performance.now()
  await expect.poll(() => performance.now() - from_ms > SILENCE_MS + TTL_MS).toBe(true)
  expect(await isHeld('x')).toBe(true)
  end()
  // A hook renews for longer than we did.
  const hooks_ms = performance.now()
  while (performance.now() - hooks_ms < SILENCE_MS + TTL_MS) {
    await status('x')
    await call(store, locks.renew, { name: 'x', fence, ttl_seconds: 3 }, callerOf('ada'))
    await new Promise((resolve) => void setImmediate(resolve))
  }
  expect(await isHeld('x')).toBe(true)
  await expect.poll(() => isHeld('x')).toBe(false)
})

test('a renewal that the store refused is tried again before the lock runs out', async () => {
  const { acquire, fences, isHeld, renewals } = await begin(2)
  await acquire('ada', 'x')
  fences.begin('ada')
  await expect.poll(() => renewals()).toBeGreaterThan(3)
  expect(await isHeld('x')).toBe(true)
})
