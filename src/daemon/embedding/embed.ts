import { checkDuty, countAnew, type Duty, failNote } from '../../core/memory/background.ts'
import { isThere } from '../../core/memory/duplicate.ts'
import { headsOf } from '../../core/memory/history.ts'
import { textOf } from '../../core/memory/version.ts'
import { keyOf } from '../../core/rows.ts'
import type { View } from '../../core/view.ts'
import type { Store } from '../../stores/writer/store.ts'
import { step } from '../steps.ts'
import type { Provider } from './provider.ts'
import { pack, toHex } from './vector.ts'

export interface Desk {
  store: Store
  provider: Provider
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
  const { store, provider, duty } = desk
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
