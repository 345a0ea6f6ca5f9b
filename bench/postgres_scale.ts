import { printTable, whole } from './report.ts'

/**
 * The arithmetic of docs/scale.md, and two small simulations, without any database.
 * The random numbers are always the same, so the document can quote them.
 */

/** One step of xorshift: enough for dice, and the same everywhere. */
function dice(seed: number): () => number {
  let x = seed
  return () => {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    return (x >>> 0) / 2 ** 32
  }
}

/**
 * Writers of one schema take turns. Each has so many callers who ask again when answered, so its
 * batch is all of them, and it waits for the others' batches before its own.
 */
function turns(processes: number, callers: number, fixed_ms: number, each_ms: number) {
  const batch_ms = fixed_ms + (callers / processes) * each_ms
  const turn_ms = batch_ms * processes
  // A claim and its completion are two asks.
  return { processes, callers, rate: (callers / 2 / turn_ms) * 1000, wait_ms: turn_ms }
}

/** As many asks as PostgreSQL's writer takes into one batch. */
const BATCH_MAX = 256

/** One process writes what all are asked: whole batches, and a hop there and back. */
function led(callers: number, fixed_ms: number, each_ms: number, hop_ms: number) {
  const wait_ms = Math.ceil(callers / BATCH_MAX) * fixed_ms + callers * each_ms + hop_ms
  return { callers, rate: (callers / 2 / wait_ms) * 1000, wait_ms }
}

/** How much more than its fair part the fullest of `partitions` gets of `users`, by hash. */
function imbalance(users: number, partitions: number, skew: number): number {
  const next = dice(users + partitions)
  const loads = Array.from({ length: partitions }, () => 0)
  let total = 0
  for (let rank = 1; rank <= users; rank += 1) {
    const load = rank ** -skew
    loads[Math.floor(next() * partitions)]! += load
    total += load
  }
  return Math.max(...loads) / (total / partitions)
}

/**
 * A limit for all partitions, lent to them in parts: a partition starts only what it has a part
 * for, and once a term unused parts go back and are asked for anew. Returns how much of the limit
 * is in use on average while there is always more work than it allows, somewhere.
 */
function quotaUse(limit: number, partitions: number, term: number): number {
  const next = dice(limit * partitions + term)
  let used = 0
  const steps = 20_000
  const wants: number[] = Array.from({ length: partitions }, () => 0)
  let lent: number[] = wants.map(() => limit / partitions)
  for (let step = 0; step < steps; step += 1) {
    // Work moves about: one partition at a time becomes busy or idle.
    if (step % 7 === 0) {
      const busy = Math.floor(next() * partitions)
      wants[busy] = next() < 0.5 ? limit : 0
    }
    if (Math.max(...wants) === 0) wants[Math.floor(next() * partitions)] = limit
    if (step % term === 0) {
      const busy = wants.filter((want) => want > 0).length
      lent = wants.map((want): number => (want > 0 ? limit / busy : 0))
    }
    used += wants.reduce((sum, want, i) => sum + Math.min(want, lent[i]!), 0)
  }
  return used / steps / limit
}

export function simulateScale() {
  const writers = [1, 2, 4, 8].flatMap((processes) =>
    [128, 512].map((callers) => turns(processes, callers, 5, 0.15)),
  )
  const leaders = [128, 512, 1_000].map((callers) => led(callers, 5, 0.15, 1))
  const hashed = [0, 0.5, 1].flatMap((skew) =>
    [4, 16].map((partitions) => ({
      skew,
      partitions,
      fullest: imbalance(100_000, partitions, skew),
    })),
  )
  const quotas = [1, 10, 100].map((term) => ({ term, use: quotaUse(1_000, 8, term) }))
  return { writers, leaders, hashed, quotas }
}

export function printScale(found: ReturnType<typeof simulateScale>): void {
  const { writers, leaders, hashed, quotas } = found
  console.log('One schema, 5 ms per batch and 0.15 ms per ask:')
  printTable([
    ['processes', 'callers', 'pairs per second', 'wait, ms'],
    ...writers.map((w) => [`${w.processes}`, `${w.callers}`, whole(w.rate), whole(w.wait_ms)]),
  ])
  console.log('The same with a leader and 1 ms to it and back, however many processes ask:')
  printTable([
    ['callers', 'pairs per second', 'wait, ms'],
    ...leaders.map((l) => [`${l.callers}`, whole(l.rate), whole(l.wait_ms)]),
  ])
  console.log('100,000 users by hash: load of the fullest partition, 1 = fair')
  printTable([
    ['partitions', 'load ~ 1 / rank^s', 'fullest'],
    ...hashed.map((h) => [`${h.partitions}`, `s = ${h.skew}`, h.fullest.toFixed(2)]),
  ])
  console.log('A limit of 1,000 lent to 8 partitions; work moves every 7 ticks:')
  printTable([
    ['lent for', 'in use'],
    ...quotas.map((q) => [`${q.term} ticks`, `${(q.use * 100).toFixed(0)} %`]),
  ])
}
