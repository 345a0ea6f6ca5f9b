import { endBackground } from '../../core/background.ts'
import { type Alike, isThere, recordAlike } from '../../core/duplicate.ts'
import { headsOf } from '../../core/memory_history.ts'
import { keyOf } from '../../core/rows.ts'
import type { BackgroundJob } from '../../core/search_rows.ts'
import { textTools } from '../../operations/text_merge.ts'
import { step } from '../steps.ts'
import type { Desk } from './embed.ts'
import type { IndexedMeaning } from './meaning.ts'
import { fromHex } from './vector.ts'

const NEIGHBOURS_MAX = 20

/** Notes of one scope are compared with each other, and those of all with everything. */
function scopesFor(scope: string): string[] | undefined {
  return scope === 'global' ? undefined : [scope, 'global']
}

/** Finds notes that say much the same as one that is new, and records each pair once. */
export async function findDuplicates(
  { store, provider, duty }: Desk,
  meaning: IndexedMeaning,
  jobs: BackgroundJob[],
  labels: boolean,
): Promise<void> {
  step('duplicates:claimed')
  await meaning.ready()
  const least = labels ? Math.min(provider.near, provider.alike) : provider.alike
  for (const { key, subject } of jobs) {
    const { scope, vectors } = await store.read((view) => {
      const memory = isThere(view, subject)
      const heads = memory ? headsOf(view, memory).filter(({ kept }) => kept) : []
      const rows = heads.flatMap(({ hash }) => view.get('vector', keyOf(provider.name, hash)) ?? [])
      return { scope: memory?.scope ?? '', vectors: rows.map(({ bytes }) => fromHex(bytes)) }
    })
    const found = new Map<string, Alike>()
    for (const vector of vectors) {
      for (const hit of meaning.near(vector, scopesFor(scope), NEIGHBOURS_MAX, least)) {
        if (hit.id === subject || hit.score <= (found.get(hit.id)?.similarity ?? 0)) continue
        const is_duplicate = hit.score >= provider.alike
        found.set(hit.id, { other: hit.id, similarity: hit.score, is_duplicate })
      }
    }
    step('duplicates:found')
    await store.write((view) => {
      recordAlike(view, subject, [...found.values()], { duty: duty(), tools: textTools, labels })
      endBackground(view, key, duty())
    })
    step('duplicates:written')
  }
}
