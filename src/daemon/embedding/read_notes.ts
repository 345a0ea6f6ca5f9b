import {
  checkDuty,
  countAnew,
  type Duty,
  endNotes,
  failNote,
} from '../../core/memory/background.ts'
import { contradicts } from '../../core/memory/contradiction.ts'
import { type Alike, embeddedAt, isThere, recordAlike } from '../../core/memory/duplicate.ts'
import { headsOf } from '../../core/memory/history.ts'
import type { Hit } from '../../core/memory/search.ts'
import { textOf } from '../../core/memory/version.ts'
import { keyOf } from '../../core/rows.ts'
import type { View } from '../../core/view.ts'
import { step } from '../../machine/test_build.ts'
import { textTools } from '../../operations/text_merge.ts'
import type { Store } from '../../stores/writer/store.ts'
import type { IndexedMeaning } from './meaning.ts'
import type { Provider } from './provider.ts'
import { cosine, fromHex, pack, type Packed, toHex } from './vectors.ts'

export interface Desk {
  store: Store
  meaning: IndexedMeaning
  duty: () => Duty
  /** Whether it is still ours to do: what fails because we stop is no failure. */
  isActive: () => boolean
}

/** Texts of the present versions that have no vector yet, by their hash: equal ones come once. */
function lacking(view: View, ids: string[], provider: Provider): Map<string, string> {
  const texts = new Map<string, string>()
  for (const id of ids) {
    const memory = isThere(view, id)
    for (const head of memory ? headsOf(view, memory) : []) {
      if (!head.kept || texts.has(head.hash)) continue
      if (view.get('vector', keyOf(provider.name, head.hash))) continue
      texts.set(head.hash, textOf(view, head) ?? '')
    }
  }
  return texts
}

/**
 * Embeds what is new in notes, and returns those that it could read: one that the model cannot read
 * does not take the others along.
 */
export async function embedNotes(desk: Desk, ids: string[]): Promise<string[]> {
  const { store, duty } = desk
  const provider = desk.meaning.model
  const texts = await store.read((view) => lacking(view, ids, provider))
  let vectors: Float32Array[]
  try {
    vectors = texts.size === 0 ? [] : await provider.embed([...texts.values()])
  } catch (error) {
    if (!desk.isActive()) throw error
    if (ids.length > 1) {
      const read: string[] = []
      for (const id of ids) read.push(...(await embedNotes(desk, [id])))
      return read
    }
    const { message } = error as Error
    await store.write((view) => failNote(view, ids[0]!, message, duty()))
    return []
  }
  step('embed:computed')
  const rows = [...texts.keys()].map((hash, i) => ({
    key: keyOf(provider.name, hash),
    provider: provider.name,
    hash,
    bytes: toHex(pack(vectors[i]!)),
  }))
  await store.write((view) => {
    checkDuty(view, duty())
    for (const row of rows) view.put('vector', row)
    if (rows.length > 0) countAnew(view, ids)
    const { agent } = duty().caller
    view.record('memory.embedded', { agent }, { provider: provider.name, ids })
  })
  step('embed:written')
  return ids
}

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
export async function findDuplicates({ store, meaning, duty }: Desk, ids: string[]): Promise<void> {
  await meaning.ready()
  const { name, alike } = meaning.model
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
