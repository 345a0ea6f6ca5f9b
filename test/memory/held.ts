import { readFileSync } from 'node:fs'

/** The held set: notes, queries with the notes that answer them, and pairs judged by hand. */

type Part = 'dev' | 'held'

function rowsOf(name: string): string[][] {
  const text = readFileSync(new URL(`held/${name}.txt`, import.meta.url), 'utf8')
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => line.split(' | '))
}

export const NOTES = rowsOf('notes').map(([key, content]) => ({ key: key!, content: content! }))

export const QUERIES = rowsOf('queries').map(([part, query, relevant]) => {
  return { part: part as Part, query: query!, relevant: new Set(relevant!.split(' ')) }
})

export const PAIRS = rowsOf('pairs').map(([part, verdict, a, b]) => {
  return { part: part as Part, isSame: verdict === 'same', a: a!, b: b! }
})

type Pair = (typeof PAIRS)[number]

/** Pairs that are worded alike, and whether they can both be true. */
export const FACTS = rowsOf('facts').map(([part, verdict, a, b]) => {
  return {
    part: part as Part,
    verdict: verdict as 'same' | 'contradicts' | 'unrelated',
    a: a!,
    b: b!,
  }
})

/** Queries that no note answers. */
export const UNANSWERED = rowsOf('unanswered').map(([part, query]) => {
  return { part: part as Part, query: query! }
})

export interface Quality {
  recall_at_5: number
  mrr: number
}

/** How well `search` answers the queries of a part: it gives keys, the best first. */
export async function measure(
  part: Part,
  search: (query: string) => Promise<string[]>,
): Promise<Quality> {
  const asked = QUERIES.filter((each) => each.part === part)
  let [recall, ranks] = [0, 0]
  for (const { query, relevant } of asked) {
    const keys = await search(query)
    const found = keys.slice(0, 5).filter((key) => relevant.has(key)).length
    recall += found / Math.min(5, relevant.size)
    const first = keys.slice(0, 10).findIndex((key) => relevant.has(key))
    ranks += first === -1 ? 0 : 1 / (first + 1)
  }
  const rounded = (sum: number) => Math.round((sum / asked.length) * 1000) / 1000
  return { recall_at_5: rounded(recall), mrr: rounded(ranks) }
}

/** Precision and recall of calling a pair the same from `alike` on. */
export function judge(
  pairs: Pair[],
  part: Part,
  similarity: (pair: Pair) => number,
  alike: number,
) {
  const judged = pairs.filter((pair) => pair.part === part)
  return precisionOf(
    judged.map((pair) => ({ isSame: pair.isSame, isFound: similarity(pair) >= alike })),
  )
}

/** How much of what was found is right, and how much of what is right was found. */
export function precisionOf(judged: { isFound: boolean; isSame: boolean }[]) {
  const count = (isFound: boolean, isSame: boolean) =>
    judged.filter((each) => each.isFound === isFound && each.isSame === isSame).length
  const right = count(true, true)
  const rounded = (share: number) => Math.round(share * 1000) / 1000
  const precision = rounded(right / (right + count(true, false)))
  return { precision, recall: rounded(right / (right + count(false, true))) }
}
