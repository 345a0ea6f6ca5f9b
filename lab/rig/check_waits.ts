import type { Violation } from './check_fences.ts'
import { type Call, type Fact, groupBy, isOk, requestOf, type Role } from './history.ts'

/** Within this time the head of a line has a lock that is free. */
export const SERVED_MS = 2_000
/** An expired lock, or that of a dead process, is noticed within this time. */
const NOTICED_MS = 1_000
/** A waiter that went away keeps its place so long, and is called in vain for a while. */
const GHOST_MS = 10_000 + SERVED_MS

/** A database that was away is used again within five seconds: so long, and then as ever. */
const BACK_MS = 3_000
/** A command asks when it has started, which takes a while on a busy machine. */
const COLD_MS = 1_000

/** From, until. */
export type Span = [number, number]

/** Stopped in mid-transaction these hold up the whole store; others only themselves. */
const ALONE: ReadonlySet<Role> = new Set(['sdk', 'mcp', 'command', 'agent command'])

const AWAY: ReadonlySet<string> = new Set(['database', 'link'])

/** When nobody could be served: something that all need was down, or stopped. */
export function outagesOf(facts: Fact[], end: number): Span[] {
  const open = new Map<string, number>()
  const spans: Span[] = []
  const begin = (key: string, t: number) => void (open.has(key) || open.set(key, t))
  const finish = (key: string, t: number) => {
    const since = open.get(key)
    if (since !== undefined) spans.push([since, t])
    open.delete(key)
  }
  for (const fact of facts) {
    if (fact.fact === 'down') begin(fact.what, fact.t)
    else if (fact.fact === 'up') finish(fact.what, fact.t + (AWAY.has(fact.what) ? BACK_MS : 0))
    else if (fact.fact === 'stopped' && !ALONE.has(fact.role)) begin(fact.who, fact.t)
    else if (fact.fact === 'continued' || fact.fact === 'killed') finish(fact.who, fact.t)
  }
  for (const [key] of [...open]) finish(key, end)
  return spans
}

/** When this process was stopped. */
function stopsOf(facts: Fact[], who: string, end: number): Span[] {
  const own = facts.filter((fact) => 'who' in fact && fact.who === who && ALONE.has(fact.role))
  return own.flatMap((fact): Span[] => {
    if (fact.fact !== 'stopped') return []
    const next = own.find(({ t, fact: what }) => t > fact.t && what !== 'stopped')
    return [[fact.t, next?.t ?? end]]
  })
}

/** The longest time between `from` and `until` that none of the spans covers any of. */
export function longestClear(from: number, until: number, spans: Span[]): number {
  let [at, longest] = [from, 0]
  for (const [begin, finish] of spans.toSorted((a, b) => a[0] - b[0])) {
    if (finish <= at) continue
    longest = Math.max(longest, Math.min(begin, until) - at)
    at = Math.max(at, finish)
  }
  return Math.max(longest, until - at)
}

/** One ask for a lock under one request id, however often it was sent. */
interface Ask {
  calls: Call[]
  asked: number
  /** Of the grant; undefined when it was refused or nobody knows. */
  fence: number | undefined
  last: Call
}

function asksOf(calls: Call[]): Ask[] {
  const acquires = calls.filter(({ op, locks }) => op === 'lock.acquire' && locks?.length === 1)
  return [...groupBy(acquires, requestOf).values()].map((same) => ({
    calls: same,
    asked: same[0]!.asked,
    fence: same.find(isOk)?.fences?.[0],
    last: same.at(-1)!,
  }))
}

/** Until when somebody may have held the lock by this ask. Undefined: for certain never. */
function mayHoldUntil(ask: Ask, writes: Call[], facts: Fact[], end: number): number | undefined {
  const { last, fence } = ask
  const ttl = last.ttl_ms ?? 0
  const death = facts.find(({ fact, t, ...f }) => {
    return fact === 'killed' && 'who' in f && f.who === last.who && t >= ask.asked
  })?.t
  if (fence === undefined) {
    if (last.outcome === 'refused') return undefined
    return (last.ended ?? death ?? end) + GHOST_MS + ttl
  }
  const under = writes.filter((write) => write.fence === fence)
  const given = under.find((write) => isOk(write) && write.op === 'lock.release')
  if (given) return given.ended!
  // `leasehold mcp` renews by itself as long as its client is there.
  if (last.door === 'mcp') return (death ?? end) + NOTICED_MS
  const renewed = [ask.calls.find(isOk)!, ...under].map((call) => call.ended ?? death ?? end)
  const expires = Math.max(...renewed) + ttl + NOTICED_MS
  return death !== undefined && last.named ? Math.min(expires, death + NOTICED_MS) : expires
}

/** How long somebody waited for a lock who could have had it, and for which. */
export interface Waited {
  ms: number
  says: string
}

/**
 * For everybody who waited and lived: the longest time in which the lock was free for certain, the
 * store could be reached, and the lock was given neither to the one who waited nor to anybody.
 */
export function waitsIn(calls: Call[], facts: Fact[]): Waited[] {
  const end = Math.max(0, ...calls.map((call) => call.ended ?? call.asked))
  const down = outagesOf(facts, end)
  const writes = calls.filter(({ op }) => op === 'lock.renew' || op === 'lock.release')
  const writesOf = groupBy(writes, ({ locks }) => locks?.[0])
  const found: Waited[] = []
  for (const [lock, asks] of groupBy(asksOf(calls), ({ last }) => last.locks![0]!)) {
    const held = asks.map((ask) => ({
      ask,
      until: mayHoldUntil(ask, writesOf.get(lock) ?? [], facts, end),
    }))
    for (const ask of asks) {
      const { last, fence, asked } = ask
      const served = ask.calls.find(isOk) ?? last
      if (!served.wait_ms || served.ended === undefined || served.outcome === 'unknown') continue
      const others = held.flatMap(({ ask: other, until }): Span[] => {
        if (other === ask || until === undefined) return []
        // Whoever has a higher fence came after, and took nothing from this one.
        if (fence !== undefined && other.fence !== undefined && other.fence > fence) return []
        return [[other.asked, until]]
      })
      const spans = [...others, ...down, ...stopsOf(facts, last.who, end)]
      const isCommand = served.door === 'cli' || served.door === 'direct'
      const ms = longestClear(asked + (isCommand ? COLD_MS : 0), served.ended, spans)
      found.push({ ms, says: `${last.who} (${last.door}) waited ${Math.round(ms)} ms for ${lock}` })
    }
  }
  return found
}

export function checkWaits(calls: Call[], facts: Fact[]): Violation[] {
  return waitsIn(calls, facts).flatMap(({ ms, says }) => {
    return ms <= SERVED_MS ? [] : [{ check: 'the head of a line is served', says }]
  })
}
