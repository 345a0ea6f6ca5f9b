import { endNotes } from '../../core/memory/background.ts'
import { type Alike, embeddedAt, recordAlike } from '../../core/memory/duplicate.ts'
import { contradicts } from '../../core/memory/contradiction.ts'
import { textOf } from '../../core/memory/version.ts'
import type { Hit } from '../../core/memory/search.ts'
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
 * A note as it is shown, and its vector. Of versions that disagree the others are not compared: a
 * pair would say that notes are alike by what it does not show.
 */
function lookAt(view: View, id: string, provider: string): Looked | undefined {
  const found = embeddedAt(view, id, provider)
  if (!found) return undefined
  const { memory, shown, vector } = found
  return { scope: memory.scope, text: textOf(view, shown) ?? '', vector: fromHex(vector.bytes) }
}

/** Finds notes that say much the same as these, and records each pair once. */
export async function findDuplicates(
  { store, provider, duty }: Desk,
  meaning: IndexedMeaning,
  ids: string[],
): Promise<void> {
  await meaning.ready()
  const { name, alike } = provider
  const looked = await store.read((view) => ids.map((id) => lookAt(view, id, name)))
  const near: Hit[][] = []
  for (const one of looked) {
    const scopes = one && scopesFor(one.scope)
    near.push(one ? await meaning.near(one.vector, scopes, NEIGHBOURS_MAX, alike) : [])
  }
  const found = await store.read((view) =>
    near.map((hits, i) => hits.flatMap(({ id }) => alikeAt(view, looked[i]!, ids[i]!, id))),
  )
  function alikeAt(view: View, one: Looked, subject: string, other: string): Alike[] {
    const its = other === subject ? undefined : lookAt(view, other, name)
    const similarity = its ? cosine(one.vector, its.vector) : 0
    if (!its || similarity < alike) return []
    return [{ other, similarity, contradicts: contradicts(one.text, its.text) }]
  }
  step('duplicates:found')
  await store.write((view) => {
    const how = { duty: duty(), tools: textTools, provider: name }
    for (const [i, id] of ids.entries()) recordAlike(view, id, found[i]!, how)
    endNotes(view, ids, duty())
  })
}
