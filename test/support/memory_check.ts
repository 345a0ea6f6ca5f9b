import type { Memory, MemoryConflict, MemoryVersion } from '../../src/core/schema/memory.ts'
import { sha256 } from '../../src/machine/digest.ts'
import type { Look } from '../simulation/queue_look.ts'

/**
 * Everything that shared memory writes down twice, worked out once more from the versions alone:
 * the present and open conflicts. Returns what does not fit.
 */
export function memoryFaults(look: Look): string[] {
  const faults: string[] = []
  for (const memory of look.rows<Memory>('memories_by_age', '')) {
    const versions = look.rows<MemoryVersion>('versions_of', memory.id)
    const says = (what: string) => faults.push(`${JSON.stringify(memory.id)}: ${what}`)
    const { heads, problems } = replay(memory, versions)
    problems.forEach(says)
    const present = memory.heads.toSorted((a, b) => a - b)
    if (heads.join() !== present.join()) says(`is ${present.join()}, replayed ${heads.join()}`)
    for (const version of versions) {
      const text = look.get('memory_text', version.id)?.content
      if (version.kept !== (text !== undefined)) says(`text of ${version.version}`)
      if (text !== undefined && sha256(text) !== version.hash) says(`hash of ${version.version}`)
    }
    const live = versions.some((each) => each.kept && heads.includes(each.version))
    if (live !== memory.live) says(`live is ${memory.live}`)
    conflictFaults(look, memory).forEach(says)
  }
  return faults
}

/** One open conflict for each sibling, between it and the first head. */
function conflictFaults(look: Look, { id, heads }: Memory): string[] {
  const rows = look.rows<MemoryConflict>('conflicts_of', id)
  const open = rows.filter(({ status }) => status === 'open')
  const told = open.map(({ ours, theirs }) => `${ours}|${theirs}`).toSorted()
  const wanted = heads.slice(1).map((each) => `${heads[0]}|${each}`)
  return told.join() === wanted.toSorted().join()
    ? []
    : [`conflicts ${told.join(' ')} where heads are ${heads.join()}`]
}

/**
 * What the versions alone say is the present: those that no other grew from. Also what is wrong
 * with them: a parent that is not older, a number twice, one above the newest that was given.
 */
function replay(
  memory: Pick<Memory, 'version'>,
  versions: Iterable<Pick<MemoryVersion, 'version' | 'parents'>>,
): { heads: number[]; problems: string[] } {
  const problems: string[] = []
  const numbers = new Set<number>()
  const grownFrom = new Set<number>()
  for (const { version, parents } of versions) {
    if (numbers.has(version)) problems.push(`version ${version} is there twice`)
    if (version > memory.version) problems.push(`version ${version} was never given`)
    numbers.add(version)
    for (const parent of parents) {
      if (parent >= version) problems.push(`version ${version} is not newer than ${parent}`)
      grownFrom.add(parent)
    }
  }
  for (const parent of grownFrom) {
    if (!numbers.has(parent)) problems.push(`version ${parent} is missing`)
  }
  const heads = [...numbers].filter((each) => !grownFrom.has(each))
  return { heads: heads.toSorted((a, b) => a - b), problems }
}
