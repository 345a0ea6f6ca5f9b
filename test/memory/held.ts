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
export function judge(part: Part, similarity: (i: number) => number, alike: number) {
  let [right, wrong, missed] = [0, 0, 0]
  for (const [i, pair] of PAIRS.entries()) {
    if (pair.part !== part) continue
    const isFound = similarity(i) >= alike
    if (isFound && pair.isSame) right += 1
    else if (isFound) wrong += 1
    else if (pair.isSame) missed += 1
  }
  const rounded = (share: number) => Math.round(share * 1000) / 1000
  return { precision: rounded(right / (right + wrong)), recall: rounded(right / (right + missed)) }
}
