import { keyOf } from '../src/core/rows.ts'
import { putMemory } from '../src/core/memory/memory.ts'
import type { Provider } from '../src/daemon/embedding/provider.ts'
import { pack, toHex } from '../src/daemon/embedding/vectors.ts'
import { textTools } from '../src/operations/text_merge.ts'
import type { Store } from '../src/stores/writer/store.ts'
import { callerOf } from './claims.ts'

const DIMENSIONS = 512
const WORDS = 20_000
const TOPICS = 500
const AT_ONCE = 512

/** Numbers that look drawn at random, and are the same every time. */
function drawing(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** Few words are in many notes and many words in few, as in any language; notes have topics. */
function wordOf(draw: () => number, topic: number): string {
  const rank = Math.floor(WORDS ** draw())
  return draw() < 0.4 ? `topic${topic}x${Math.floor(draw() * 40)}` : `word${rank}`
}

export function noteOf(n: number): string {
  const draw = drawing(n * 7919 + 1)
  const topic = Math.floor(TOPICS * draw() * draw())
  return Array.from({ length: 25 }, () => wordOf(draw, topic)).join(' ')
}

export function queryOf(n: number): string {
  const draw = drawing(n * 104_729 + 5)
  const topic = Math.floor(TOPICS * draw() * draw())
  return Array.from({ length: 5 }, () => wordOf(draw, topic)).join(' ')
}

const directions = new Map<string, Float32Array>()

function directionOf(word: string): Float32Array {
  let found = directions.get(word)
  if (!found) {
    let seed = 7
    for (const letter of word) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) >>> 0
    const draw = drawing(seed)
    found = Float32Array.from({ length: DIMENSIONS }, () => draw() - 0.5)
    directions.set(word, found)
  }
  return found
}

/** The sum of a text's words, in place of a model: what is measured here is the search. */
function vectorOf(text: string): Float32Array {
  const sum = new Float32Array(DIMENSIONS)
  for (const word of text.split(' ')) {
    const direction = directionOf(word)
    for (let i = 0; i < DIMENSIONS; i += 1) sum[i]! += direction[i]!
  }
  return sum
}

export const WORDS_PROVIDER: Provider = {
  name: 'bench:words@512',
  dimensions: DIMENSIONS,
  alike: 0.99,
  floor: 0,
  embed: (texts) => Promise.resolve(texts.map(vectorOf)),
  close: () => Promise.resolve(),
}

/** Puts notes from `from` to `to`, each with its vector, as if all had been embedded. */
export async function fillNotes(store: Store, from: number, to: number): Promise<void> {
  const caller = callerOf(0)
  const provider = WORDS_PROVIDER.name
  for (let begun = from; begun < to; begun += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, to - begun) }, (_, i) => begun + i)
    await Promise.all(
      numbers.map((n) => {
        const content = noteOf(n)
        const bytes = toHex(pack(vectorOf(content)))
        return store.write((view) => {
          const ask = { scope: `project:p${n % 20}`, key: `note-${n}`, content }
          const { version } = putMemory(view, ask, caller, textTools)
          const { hash } = version
          view.put('vector', { key: keyOf(provider, hash), provider, hash, bytes })
        })
      }),
    )
  }
}
