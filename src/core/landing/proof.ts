import { planted } from '../planted.ts'
import { Refusal } from '../refusal.ts'

type Metadata = Record<string, unknown>

/** What a lander writes into the metadata of a task: by what it is proved, why it came back. */
const WRITTEN: readonly string[] = ['proof', 'returned']

/**
 * Metadata as somebody says it; what a lander wrote there stays. Refuses with `forbidden` to say
 * something else in its place, or without one: `done` is proved by nobody's word.
 */
export function keepProof(said: Metadata, before: Metadata = {}): Metadata {
  if (planted('R55 proof')) return said
  const kept = WRITTEN.filter((name) => before[name] !== undefined)
  const forged = WRITTEN.find((name) => name in said && !isSame(said[name], before[name]))
  if (forged !== undefined) throw forgery(forged)
  return { ...said, ...Object.fromEntries(kept.map((name) => [name, before[name]])) }
}

/** Whichever order its fields are in: who read it may write it back. */
const isSame = (a: unknown, b: unknown) => factsOf(a) === factsOf(b)
const factsOf = (value: unknown) =>
  JSON.stringify(Object(value) === value ? Object.entries(value as object).toSorted(byName) : value)
const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

function forgery(name: string): Refusal {
  return new Refusal('forbidden', `metadata.${name} is written by the lander alone`, {
    next: 'Leave it out: what the lander wrote stays as it is.',
    details: { field: `metadata.${name}` },
  })
}
