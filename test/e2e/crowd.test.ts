import { expect, test } from 'vitest'
import type { Client, ShownEvent, ShownLease } from '../../src/index.ts'
import { Refusal } from '../../src/index.ts'
import { agentClient, clientOf, daemonOn } from '../support/daemons.ts'
import { ROUNDS, type Sandbox, sandbox } from '../support/processes.ts'

const CROWD = ROUNDS === 1 ? 300 : 1_000
const PATIENT = { timeout: 240_000 }

/** Agents of one program, over connections that are kept open. */
async function crowdOn(place: Sandbox): Promise<{ agents: Client[]; admin: Client }> {
  const daemon = await daemonOn(place)
  const client = await agentClient(place, daemon, 'crowd')
  const agents = Array.from({ length: CROWD }, (_, i) => client.as(`crowd/${i}`))
  return { agents, admin: await clientOf({ dir: place.state, agent: 'admin' }) }
}

/** Everything that happened to the lock so far, in order. */
async function eventsOf(admin: Client, lock: string, last: string): Promise<ShownEvent[]> {
  await admin.withLock(last, () => undefined)
  const found: ShownEvent[] = []
  for await (const { event } of admin.events({ after: '0-0' })) {
    if (event?.lock === lock) found.push(event)
    if (event?.lock === last && event.type === 'lease.released') break
  }
  return found
}

function say(what: string, start_ms: number): void {
  const seconds = ((performance.now() - start_ms) / 1000).toFixed(1)
  process.stderr.write(`${what}: ${seconds} s\n`)
}

test(`of ${CROWD} agents that race for one lock over HTTP, one wins`, PATIENT, async () => {
  const { agents, admin } = await crowdOn(sandbox())
  const start_ms = performance.now()
  const asked = agents.map((agent) => agent.lock.acquire({ names: ['x'] }))
  const outcomes = await Promise.allSettled(asked)
  say(`${CROWD} agents raced`, start_ms)
  const won = outcomes.filter((each) => each.status === 'fulfilled')
  const lost = outcomes.filter((each) => each.status === 'rejected')
  expect([won.length, lost.length]).toEqual([1, CROWD - 1])
  const { holder } = won[0]!.value as ShownLease
  for (const { reason } of lost) {
    expect(reason).toBeInstanceOf(Refusal)
    expect(reason).toMatchObject({ code: 'held', details: { holder, by_you: false } })
  }
  expect(await admin.lock.status({ name: 'x' })).toMatchObject({ lock_holder: holder })
})

test(`${CROWD} waiters get one lock in turn, in order, one call each`, PATIENT, async () => {
  const { agents, admin } = await crowdOn(sandbox())
  const holder = admin.as('holder')
  await holder.lock.acquire({ names: ['x'] })
  const start_ms = performance.now()
  const turns: string[] = []
  const wait = async (agent: Client) => {
    const got = await agent.lock.acquire({ names: ['x'], wait_seconds: 200, ttl_seconds: 60 })
    const lease = got as ShownLease
    turns.push(lease.holder)
    await agent.lock.release({ name: 'x', fence: lease.fence })
  }
  const waiting = Promise.all(agents.map((agent) => wait(agent)))
  await expect
    .poll(async () => (await admin.lock.status({ name: 'x' })).waiters.length, {
      timeout: 120_000,
    })
    .toBe(CROWD)
  say(`${CROWD} waiters joined the line`, start_ms)
  const served_ms = performance.now()
  await holder.lock.release({ name: 'x' })
  await waiting
  say(`${CROWD} waiters were served`, served_ms)

  const happened = await eventsOf(admin, 'x', 'the end')
  const of = (type: string) => happened.filter((event) => event.type === type)
  const joined = of('ticket.joined').map(({ agent }) => agent)
  expect(joined).toHaveLength(CROWD)
  expect(turns).toEqual(joined)
  expect(of('ticket.called').map(({ agent }) => agent)).toEqual(joined)
  expect(of('lease.granted').map(({ agent }) => agent)).toEqual(['holder', ...joined])
  expect(of('lease.released')).toHaveLength(CROWD + 1)
  const { waiters, is_locked } = await admin.lock.status({ name: 'x' })
  expect({ waiters, is_locked }).toEqual({ waiters: [], is_locked: false })
})
