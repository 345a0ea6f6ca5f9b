import type { Memory, MemoryVersion } from '../schema/memory.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** The history of one note: a graph of versions, in which parents have lower numbers. */

export const versionId = (memory_id: string, version: number) => keyOf(memory_id, String(version))

/** One version of a note, without its text. */
export function versionOf(
  view: View,
  memory_id: string,
  version: number,
): MemoryVersion | undefined {
  return view.get('memory_version', versionId(memory_id, version))
}

/** The versions that are the present, in the order of `heads`: the first was there before. */
export function headsOf(view: View, { id, heads }: Memory): MemoryVersion[] {
  return heads.flatMap((each) => versionOf(view, id, each) ?? [])
}

/** The one of them that a note is shown by: the first that has a text. */
export function shownHead(view: View, memory: Memory): MemoryVersion | undefined {
  const heads = headsOf(view, memory)
  return heads.find(({ kept }) => kept) ?? heads[0]
}

/** How far back a common ancestor is looked for: others wait for this write. */
const LOOKED_AT_MAX = 2_000

/**
 * The newest version that both grew from, or null. Versions are walked from the newest on, so each
 * is met after all that grew from it: the first that both sides reach is the nearest.
 */
export function commonAncestor(view: View, memory_id: string, a: number, b: number): number | null {
  const reached = new Map([
    [a, 1],
    [b, 2],
  ])
  let left = LOOKED_AT_MAX
  for (const { version, parents } of view.scan('versions_of', memory_id)) {
    const sides = reached.get(version) ?? 0
    if (sides === 3) return version
    reached.delete(version)
    if (sides !== 0) for (const p of parents) reached.set(p, (reached.get(p) ?? 0) | sides)
    if (reached.size === 0 || left-- === 0) return null
  }
  return null
}
