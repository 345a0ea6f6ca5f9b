import { endBackground } from '../../core/background.ts'
import { type Alike, isThere, recordAlike } from '../../core/duplicate.ts'
import { headsOf } from '../../core/memory_history.ts'
import { keyOf } from '../../core/rows.ts'
import type { BackgroundJob } from '../../core/search_rows.ts'
import type { View } from '../../core/view.ts'
import { textTools } from '../../operations/text_merge.ts'
import { step } from '../steps.ts'
import type { Desk } from './embed.ts'
import type { IndexedMeaning } from './meaning.ts'
import { fromHex, type Packed } from './vector.ts'

const NEIGHBOURS_MAX = 20

/** Notes of one scope are compared with each other, and those of all with everything. */
function scopesFor(scope: string): string[] | undefined {
  return scope === 'global' ? undefined : [scope, 'global']
}

interface Looked {
  key: string
  subject: string
  scope: string
  vectors: Packed[]
}

/** The vectors of the notes as they are now; none of one that is gone. */
function lookAt(view: View, jobs: BackgroundJob[], provider: string): Looked[] {
  return jobs.map(({ key, subject }) => {
    const memory = isThere(view, subject)
    const heads = memory ? headsOf(view, memory).filter(({ kept }) => kept) : []
    const rows = heads.flatMap(({ hash }) => view.get('vector', keyOf(provider, hash)) ?? [])
    const vectors = rows.map(({ bytes }) => fromHex(bytes))
    return { key, subject, scope: memory?.scope ?? '', vectors }
  })
}

/** Finds notes that say much the same as those that are new, and records each pair once. */
export async function findDuplicates(
  { store, provider, duty }: Desk,
  meaning: IndexedMeaning,
  jobs: BackgroundJob[],
  labels: boolean,
): Promise<void> {
  step('duplicates:claimed')
  await meaning.ready()
  const least = labels ? Math.min(provider.near, provider.alike) : provider.alike
  const alikeTo = ({ subject, scope, vectors }: Looked): Alike[] => {
    const found = new Map<string, Alike>()
    for (const vector of vectors) {
      for (const { id, score } of meaning.near(vector, scopesFor(scope), NEIGHBOURS_MAX, least)) {
        if (id === subject || score <= (found.get(id)?.similarity ?? 0)) continue
        found.set(id, { other: id, similarity: score, is_duplicate: score >= provider.alike })
      }
    }
    return [...found.values()]
  }
  const looked = await store.read((view) => lookAt(view, jobs, provider.name))
  const found = looked.map((each) => alikeTo(each))
  step('duplicates:found')
  await store.write((view) => {
    for (const [i, { key, subject }] of looked.entries()) {
      recordAlike(view, subject, found[i]!, { duty: duty(), tools: textTools, labels })
      endBackground(view, key, duty())
    }
  })
  step('duplicates:written')
}
