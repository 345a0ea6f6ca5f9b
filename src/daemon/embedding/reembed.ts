import { askInBackground, checkDuty, type Duty } from '../../core/memory/background.ts'
import { headsOf } from '../../core/memory/history.ts'
import { keyOf } from '../../core/rows.ts'
import type { View } from '../../core/view.ts'
import type { Provider } from './provider.ts'

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
