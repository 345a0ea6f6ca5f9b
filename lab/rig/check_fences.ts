import {
  type Call,
  type Effect,
  effectsOf,
  type Fact,
  GRANTS,
  groupBy,
  isOk,
  WRITES,
} from './history.ts'

/** A promise that was not kept, told from what somebody outside saw. */
export interface Violation {
  check: string
  says: string
}

export interface Grant {
  lock: string
  fence: number
  asked: number
  ended: number
  by: Effect
}

/** Grants as their callers saw them, each once. */
export function grantsOf(calls: Call[]): Grant[] {
  return effectsOf(calls, GRANTS).flatMap((by) => {
    const { locks = [], fences = [], asked, ended } = by
    return fences.map((fence, i) => ({ lock: locks[i] ?? '?', fence, asked, ended, by }))
  })
}

const name = ({ lock, fence, by }: Grant) => `${lock}#${fence} of ${by.who} (${by.door})`

/**
 * Fences rise in real time, over the whole store: one that was asked for after another had been
 * answered is higher. And no fence is given twice.
 */
export function checkFences(calls: Call[]): Violation[] {
  const check = 'fences rise'
  const grants = grantsOf(calls)
  const found: Violation[] = []
  const given = new Map<number, Grant>()
  for (const grant of grants) {
    const other = given.get(grant.fence)
    if (other) found.push({ check, says: `${name(grant)} and ${name(other)} are one fence` })
    given.set(grant.fence, grant)
  }
  const told = grants.toSorted((a, b) => a.ended - b.ended)
  let highest: Grant | undefined
  let next = 0
  for (const grant of grants.toSorted((a, b) => a.asked - b.asked)) {
    for (; next < told.length && told[next]!.ended < grant.asked; next += 1) {
      if (!highest || told[next]!.fence > highest.fence) highest = told[next]!
    }
    if (!highest || grant.fence > highest.fence) continue
    found.push({ check, says: `${name(grant)} was asked for after ${name(highest)} was given` })
  }
  return found
}

/** A write under a fence that was accepted although a higher one had been given before it began. */
export function checkStaleWrites(calls: Call[]): Violation[] {
  const byLock = groupBy(grantsOf(calls), ({ lock }) => lock)
  return effectsOf(calls, WRITES).flatMap((write) => {
    const { locks = [], fence, asked, who, op } = write
    if (fence === undefined) return []
    const newer = (byLock.get(locks[0]!) ?? []).find((grant) => {
      return grant.fence > fence && grant.ended < asked
    })
    if (!newer) return []
    const says = `${op} of ${locks[0]}#${fence} by ${who} was accepted after ${name(newer)}`
    return [{ check: 'stale writes are refused', says }]
  })
}

/** PostgreSQL's clock is the wall clock of the machine, in whole milliseconds. */
const ROUNDED_MS = 60

/** When each was last heard of. */
type Spoke = Map<string, number>

/** Until when a lease lives for certain: its TTL, counted from when it was asked for. */
function livesUntil(grant: Grant, writes: Call[], facts: Fact[], spoke: Spoke): number {
  let until = grant.asked + (grant.by.ttl_ms ?? 0)
  for (const { op, asked, ttl_ms } of writes) {
    if (op === 'lock.renew') until = Math.max(until, asked + (ttl_ms ?? 0))
    else until = Math.min(until, asked)
  }
  for (const fact of facts) {
    if (fact.t < grant.asked) continue
    const forced = fact.fact === 'forced' && fact.lock === grant.lock
    // A lease that names its process is over when that is gone.
    const died = fact.fact === 'killed' && fact.who === grant.by.who && grant.by.named
    if (forced) until = Math.min(until, fact.t)
    // One that ended by itself was noticed later, and said nothing any more.
    if (died) until = Math.min(until, fact.self ? (spoke.get(fact.who) ?? fact.t) : fact.t)
  }
  return until - ROUNDED_MS
}

/**
 * Nobody is robbed: while a lease lives for certain, its lock is given to no other agent. Writes
 * whose end nobody saw may have released it: such leases are left out from then on.
 */
export function checkRobbed(calls: Call[], facts: Fact[]): Violation[] {
  const found: Violation[] = []
  const spoke: Spoke = new Map()
  for (const { who, asked, ended = asked } of calls) {
    spoke.set(who, Math.max(spoke.get(who) ?? 0, ended))
  }
  const asks = calls.filter(({ op }) => (WRITES as readonly string[]).includes(op))
  const writesOf = groupBy(asks, ({ locks, fence }) => `${locks?.[0]}#${fence}`)
  for (const [, grants] of groupBy(grantsOf(calls), ({ lock }) => lock)) {
    const inOrder = grants.toSorted((a, b) => a.fence - b.fence)
    for (const [i, grant] of inOrder.entries()) {
      const writes = writesOf.get(`${grant.lock}#${grant.fence}`) ?? []
      const until = livesUntil(grant, writes.filter(isOk), facts, spoke)
      const unclear = writes.find((each) => each.outcome === 'unknown' && each.op !== 'lock.renew')
      // An agent whose lease names no living process may take the lock again: that ends it.
      const again = inOrder.slice(i + 1).find(({ by }) => by.agent === grant.by.agent)
      const end = Math.min(until, unclear?.asked ?? until, again?.asked ?? until)
      const thief = inOrder.slice(i + 1).find((other) => {
        return other.by.agent !== grant.by.agent && other.ended < end
      })
      if (!thief) continue
      const early = Math.round(end - thief.ended)
      const says = `${name(thief)} was given ${early} ms before ${name(grant)} could end`
      found.push({ check: 'nobody is robbed', says })
    }
  }
  return found
}

/** Locks that are only ever asked for together were given together: neighbours in the events. */
export function checkTogether(events: Recorded[]): Violation[] {
  const granted = events.filter(({ type, lock }) => {
    return type === 'lease.granted' && lock !== null && /^pair\d+:[ab]$/.test(lock)
  })
  const found: Violation[] = []
  for (const [pair, both] of groupBy(granted, ({ lock }) => lock!.slice(0, -2))) {
    const inOrder = both.toSorted((a, b) => a.position - b.position)
    for (let i = 0; i < inOrder.length; i += 2) {
      const [one, other] = [inOrder[i]!, inOrder[i + 1]]
      if (other && one.lock !== other.lock && one.agent === other.agent) continue
      const says = `${pair} was given in part to ${one.agent} at position ${one.position}`
      found.push({ check: 'all or nothing', says })
      break
    }
  }
  return found
}

/** An event of the store, as its own list shows it. */
export interface Recorded {
  position: number
  at: string
  type: string
  agent: string
  lock: string | null
  task: string | null
  data: Record<string, unknown>
}

/** Positions have no gap from the first that is kept to the last. */
export function checkGaps(events: Recorded[]): Violation[] {
  const positions = events.map(({ position }) => position).toSorted((a, b) => a - b)
  return positions.flatMap((position, i) => {
    const before = positions[i - 1]
    if (before === undefined || position === before + 1) return []
    const says = position === before ? `${position} is there twice` : `${before + 1} is missing`
    return [{ check: 'events have no gaps', says }]
  })
}
