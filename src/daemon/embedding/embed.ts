import {
  askInBackground,
  checkDuty,
  type Duty,
  endBackground,
  failBackground,
} from '../../core/memory/background.ts'
import { isThere } from '../../core/memory/duplicate.ts'
import { headsOf } from '../../core/memory/history.ts'
import { textOf } from '../../core/memory/version.ts'
import { keyOf } from '../../core/rows.ts'
import type { BackgroundJob } from '../../core/memory/search_rows.ts'
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
function lacking(view: View, jobs: BackgroundJob[], provider: Provider): Map<string, string> {
  const texts = new Map<string, string>()
  for (const { subject } of jobs) {
    const memory = isThere(view, subject)
    for (const head of memory ? headsOf(view, memory) : []) {
      if (!head.kept || texts.has(head.hash)) continue
      if (view.get('vector', keyOf(provider.name, head.hash))) continue
      texts.set(head.hash, textOf(view, head) ?? '')
    }
  }
  return texts
}

/** Embeds what is new in notes. One that the model cannot read does not take the others along. */
export async function embedNotes(desk: Desk, jobs: BackgroundJob[]): Promise<void> {
  step('embed:claimed')
  const { store, provider, duty } = desk
  const texts = await store.read((view) => lacking(view, jobs, provider))
  let vectors: Float32Array[]
  try {
    vectors = texts.size === 0 ? [] : await provider.embed([...texts.values()])
  } catch (error) {
    if (!desk.isActive()) throw error
    if (jobs.length > 1) {
      for (const job of jobs) await embedNotes(desk, [job])
      return
    }
    const { message } = error as Error
    await store.write((view) => {
      checkDuty(view, duty())
      failBackground(view, jobs[0]!.key, message, duty())
    })
    return
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
    for (const { key, subject } of jobs) {
      endBackground(view, key, duty())
      if (isThere(view, subject)) askInBackground(view, 'duplicates', subject)
    }
    const data = { provider: provider.name, ids: jobs.map(({ subject }) => subject) }
    const { agent } = duty().caller
    view.record({ type: 'memory.embedded', agent, lock: null, task: null, data })
  })
  step('embed:written')
}

/** Notes asked for at once: others wait for this write. */
const NOTES_MAX = 100

/** From now on this provider's vectors count; notes without one are asked for, step by step. */
export function adoptProvider(view: View, provider: Provider, duty: Duty): void {
  const { name, dimensions } = provider
  if (view.get('embedding', 'embedding')?.provider === name) return
  checkDuty(view, duty)
  const since_at = view.at
  view.put('embedding', { key: 'embedding', provider: name, dimensions, since_at, cursor: '' })
  const data = { provider: name, dimensions }
  const { agent } = duty.caller
  view.record({ type: 'memory.provider_changed', agent, lock: null, task: null, data })
}

/** Asks for the next notes that have no vector of this provider. False when all were asked for. */
export function askForMore(view: View, provider: Provider, duty: Duty): boolean {
  const now = view.get('embedding', 'embedding')
  if (!now || now.cursor === null || now.provider !== provider.name) return false
  checkDuty(view, duty)
  let last: string | null = null
  let left = NOTES_MAX
  for (const memory of view.scan('memories', '', { order: now.cursor, key: now.cursor })) {
    if (left-- === 0) break
    last = memory.id
    const lacks = headsOf(view, memory).some(
      ({ kept, hash }) => kept && !view.get('vector', keyOf(provider.name, hash)),
    )
    if (lacks) askInBackground(view, 'embed', memory.id)
  }
  view.put('embedding', { ...now, cursor: left < 0 ? last : null })
  return true
}
