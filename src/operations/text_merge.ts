import { diff3Merge, diffComm } from 'node-diff3'
import type { TextTools } from '../core/memory/merge.ts'
import { sha256 } from '../machine/digest.ts'

/**
 * Comparing takes this many steps at most, about 50 ms: others wait meanwhile, and the number of
 * steps grows with the square of the lines.
 */
const STEPS_MAX = 20_000_000

const linesOf = (text: string) => text.split('\n')

/** Hashes, and texts compared line by line, for rules that may not import any of it. */
export const textTools: TextTools = {
  measure: (text) => ({ hash: sha256(text), size: Buffer.byteLength(text) }),
  merge(base, ours, theirs, labels) {
    const [o, t] = [linesOf(ours), linesOf(theirs)]
    if (base === null) return isTooLong(o, t) ? undefined : beside(o, t, labels)
    const b = linesOf(base)
    const { head, tail, rests } = trimmed([b, o, t])
    const [baseRest, oursRest, theirsRest] = rests as [string[], string[], string[]]
    if (isTooLong(baseRest, oursRest) || isTooLong(baseRest, theirsRest)) return undefined
    const regions = diff3Merge(oursRest, baseRest, theirsRest)
    const lines = regions.map(({ ok, conflict }) =>
      conflict ? marked(conflict.a, conflict.b, labels, conflict.o) : ok!,
    )
    const clean = regions.every(({ conflict }) => !conflict)
    return { text: [head, ...lines, tail].flat().join('\n'), clean }
  },
}

/** Without a base nobody knows who changed what: every difference stands between markers. */
function beside(ours: string[], theirs: string[], labels: Labels) {
  const { head, tail, rests } = trimmed([ours, theirs])
  const lines = diffComm(rests[0]!, rests[1]!).flatMap((part) =>
    part.common ? part.common : marked(part.buffer1, part.buffer2, labels),
  )
  return { text: [...head, ...lines, ...tail].join('\n'), clean: lines.length === 0 }
}

interface Labels {
  ours: string
  theirs: string
}

function marked(ours: string[], theirs: string[], labels: Labels, base?: string[]): string[] {
  const middle = base ? ['||||||| base', ...base] : []
  return [
    `<<<<<<< ${labels.ours}`,
    ...ours,
    ...middle,
    '=======',
    ...theirs,
    `>>>>>>> ${labels.theirs}`,
  ]
}

/** What all begin and end with needs no comparing. */
function trimmed(texts: string[][]) {
  const [first = []] = texts
  const shortest = Math.min(...texts.map((text) => text.length))
  let head = 0
  while (head < shortest && texts.every((text) => text[head] === first[head])) head += 1
  let tail = 0
  while (
    tail < shortest - head &&
    texts.every((text) => text[text.length - 1 - tail] === first[first.length - 1 - tail])
  ) {
    tail += 1
  }
  return {
    head: first.slice(0, head),
    tail: first.slice(first.length - tail),
    rests: texts.map((text) => text.slice(head, text.length - tail)),
  }
}

/** Every pair of equal lines is looked at, each along all that were found before. */
function isTooLong(a: string[], b: string[]): boolean {
  const counts = new Map<string, number>()
  for (const line of a) counts.set(line, (counts.get(line) ?? 0) + 1)
  let pairs = 0
  for (const line of b) pairs += counts.get(line) ?? 0
  return pairs * Math.min(a.length, b.length) > STEPS_MAX
}
