import { endBackground } from '../../core/memory/background.ts'
import { type Alike, isThere, recordAlike } from '../../core/memory/duplicate.ts'
import { contradicts } from '../../core/memory/contradiction.ts'
import { shownHead } from '../../core/memory/history.ts'
import { textOf } from '../../core/memory/version.ts'
import { keyOf } from '../../core/rows.ts'
import type { BackgroundJob } from '../../core/memory/search_rows.ts'
import type { View } from '../../core/view.ts'
import { textTools } from '../../operations/text_merge.ts'
import { step } from '../steps.ts'
import type { Desk } from './embed.ts'
import type { IndexedMeaning } from './meaning.ts'
import { cosine, fromHex, type Packed } from './vector.ts'

const NEIGHBOURS_MAX = 20

/** Notes of one scope are compared with each other, and those of all with everything. */
function scopesFor(scope: string): string[] | undefined {
  return scope === 'global' ? undefined : [scope, 'global']
}

interface Looked {
  scope: string
  text: string
  vector: Packed
}

/**
 * A note as it is shown, and its vector; undefined when it is gone or not embedded yet. Of versions
 * that disagree the others are not compared: a pair would say that notes are alike by what it does
 * not show.
 */
export function lookAt(view: View, id: string, provider: string): Looked | undefined {
  const memory = isThere(view, id)
  const shown = memory && shownHead(view, memory)
  const row = shown && view.get('vector', keyOf(provider, shown.hash))
  if (!row) return undefined
  return { scope: memory.scope, text: textOf(view, shown) ?? '', vector: fromHex(row.bytes) }
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
  const alikeTo = (view: View, subject: string, one: Looked | undefined): Alike[] => {
    if (!one) return []
    return meaning
      .near(one.vector, scopesFor(one.scope), NEIGHBOURS_MAX, least)
      .flatMap(({ id: other }) => {
        const its = other === subject ? undefined : lookAt(view, other, provider.name)
        const similarity = its ? cosine(one.vector, its.vector) : 0
        if (!its || similarity < least) return []
        const is_duplicate = similarity >= provider.alike
        return [{ other, similarity, is_duplicate, contradicts: contradicts(one.text, its.text) }]
      })
  }
  const found = await store.read((view) =>
    jobs.map(({ subject }) => alikeTo(view, subject, lookAt(view, subject, provider.name))),
  )
  step('duplicates:found')
  await store.write((view) => {
    for (const [i, { key, subject }] of jobs.entries()) {
      recordAlike(view, subject, found[i]!, { duty: duty(), tools: textTools, labels })
      endBackground(view, key, duty())
    }
  })
  step('duplicates:written')
}
