import { afterAll, describe, expect, test } from 'vitest'
import { LocalProvider } from '../../src/daemon/jobs/local.ts'
import { cosine, pack } from '../../src/daemon/jobs/vector.ts'
import { judge, measure, NOTES, PAIRS, QUERIES } from './held.ts'
import { Notes, STORES } from './scene.ts'

/** One model for all of this file: it is loaded once, from the package. */
const model = new LocalProvider(undefined, new URL('../../dist/test/embedder.cjs', import.meta.url))
const cache = new Map<string, Float32Array>()
const cached = {
  name: model.name,
  dimensions: model.dimensions,
  alike: model.alike,
  near: model.near,
  embed: async (texts: string[], urgent?: boolean) => {
    const fresh = texts.filter((text) => !cache.has(text))
    const vectors = fresh.length > 0 ? await model.embed(fresh, urgent) : []
    for (const [i, text] of fresh.entries()) cache.set(text, vectors[i]!)
    return texts.map((text) => cache.get(text)!)
  },
  close: async () => undefined,
}

afterAll(() => model.close())

const say = (line: string) => void process.stdout.write(`${line}\n`)

test('the held set is as large as it has to be', () => {
  expect(NOTES.length).toBeGreaterThanOrEqual(200)
  expect(QUERIES.filter(({ part }) => part === 'held').length).toBeGreaterThanOrEqual(60)
  expect(PAIRS.filter(({ part }) => part === 'held').length).toBeGreaterThanOrEqual(60)
  const keys = new Set(NOTES.map(({ key }) => key))
  const wanted = new Set(QUERIES.flatMap(({ relevant }) => Array.from(relevant)))
  const unknown = [...wanted].filter((key) => !keys.has(key))
  expect(unknown).toEqual([])
})

/** Each store ranks words by its own means; a short run looks at one, and at what is reported. */
const isLong = process.env['FAULTS'] === 'long'

describe.each(isLong ? STORES : ['sqlite' as const])('searching the held set on %s', (kind) => {
  test(
    'fused is at least as good as words and as meaning alone',
    { timeout: 180_000 },
    async () => {
      const notes = new Notes(kind)
      await Promise.all(NOTES.map(({ key, content }) => notes.put(key, content)))
      await notes.keeper(async () => cached)
      await notes.settled()
      const search = (mode: string) => (query: string) => notes.find(query, { mode, limit: 10 })
      for (const part of isLong ? (['dev', 'held'] as const) : ['held' as const]) {
        const text = await measure(part, search('text'))
        const meaning = await measure(part, search('meaning'))
        const fused = await measure(part, search('fused'))
        say(`${kind} ${part}: ${JSON.stringify({ text, meaning, fused })}`)
        for (const alone of [text, meaning]) {
          expect(fused.recall_at_5).toBeGreaterThanOrEqual(alone.recall_at_5)
          expect(fused.mrr).toBeGreaterThanOrEqual(alone.mrr)
        }
        expect(fused.recall_at_5).toBeGreaterThan(0.75)
      }
    },
  )
})

test('duplicates are told from notes that are only near', async () => {
  const first = (await cached.embed(PAIRS.map(({ a }) => a))).map(pack)
  const second = (await cached.embed(PAIRS.map(({ b }) => b))).map(pack)
  const similarity = (i: number) => cosine(first[i]!, second[i]!)
  for (const alike of [model.alike, 0.85]) {
    const [dev, held] = (['dev', 'held'] as const).map((part) => judge(part, similarity, alike))
    say(`duplicates from ${alike} on: ${JSON.stringify({ dev, held })}`)
  }
  const { precision, recall } = judge('held', similarity, model.alike)
  expect(precision).toBeGreaterThanOrEqual(0.9)
  expect(recall).toBeGreaterThanOrEqual(0.6)
})
