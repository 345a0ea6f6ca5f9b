import type { ComponentChildren } from 'preact'
import { type Act, Acts } from './acts.tsx'

/** A stretch of two texts: the same in both, or different. */
interface Hunk {
  ours: string
  theirs: string
  isSame: boolean
}

/** Comparing takes the product of both lengths; beyond this, all between the same ends differs. */
const CELLS_MAX = 1_000_000

const wordsIn = (text: string) => text.match(/\s+|[^\s]+/g) ?? []

/** What differs between two lists of words or lines, in order. */
function compare(ours: string[], theirs: string[]): Hunk[] {
  let begin = 0
  while (begin < ours.length && ours[begin] === theirs[begin]) begin += 1
  let end = 0
  const most = Math.min(ours.length, theirs.length) - begin
  while (end < most && ours.at(-1 - end) === theirs.at(-1 - end)) end += 1
  const [a, b] = [ours.slice(begin, ours.length - end), theirs.slice(begin, theirs.length - end)]
  const same = (part: string[]): Hunk => {
    const text = part.join('')
    return { ours: text, theirs: text, isSame: true }
  }
  const hunks = [same(ours.slice(0, begin)), ...middle(a, b), same(ours.slice(ours.length - end))]
  return hunks.filter((hunk) => hunk.ours !== '' || hunk.theirs !== '')
}

function middle(a: string[], b: string[]): Hunk[] {
  if (a.length * b.length > CELLS_MAX) {
    return [{ ours: a.join(''), theirs: b.join(''), isSame: false }]
  }
  const common = lengths(a, b)
  const hunks: Hunk[] = []
  const add = (ours: string, theirs: string, isSame: boolean) => {
    const last = hunks.at(-1)
    if (last?.isSame !== isSame) return void hunks.push({ ours, theirs, isSame })
    last.ours += ours
    last.theirs += theirs
  }
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      add(a[i]!, b[j]!, true)
      ;[i, j] = [i + 1, j + 1]
    } else if (j >= b.length || (i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!)) {
      add(a[i]!, '', false)
      i += 1
    } else {
      add('', b[j]!, false)
      j += 1
    }
  }
  return hunks
}

/** Of what is left behind each pair of places, how much is common to both. */
function lengths(a: string[], b: string[]): Uint32Array[] {
  const rows = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const isSame = a[i] === b[j]
      rows[i]![j] = isSame ? rows[i + 1]![j + 1]! + 1 : Math.max(rows[i + 1]![j]!, rows[i]![j + 1]!)
    }
  }
  return rows
}

interface SidesProps {
  /** What stands above each of the two, and below. */
  heads: [ComponentChildren, ComponentChildren]
  texts: [string | null, string | null]
  acts: [Act, Act] | []
}

/** Two texts beside each other, with the words marked that the other does not have. */
export function Sides({ heads, texts: [ours, theirs], acts }: SidesProps) {
  const hunks = compare(wordsIn(ours ?? ''), wordsIn(theirs ?? ''))
  return (
    <div class="sides">
      {([ours, theirs] as const).map((text, i) => (
        <div key={i} class="stack">
          {heads[i]}
          <pre class="body">
            {text === null
              ? '(deleted)'
              : hunks.map((hunk, j) => {
                  const said = i === 0 ? hunk.ours : hunk.theirs
                  return hunk.isSame ? said : said !== '' && <mark key={j}>{said}</mark>
                })}
          </pre>
          <Acts of={acts[i] ? [acts[i]] : []} />
        </div>
      ))}
    </div>
  )
}
