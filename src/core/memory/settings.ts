import {
  applyHostSettings,
  isSaidAlready,
  type SettingRows,
  settingsInForce,
} from '../queue/host_settings.ts'
import type { MemorySettings, MemoryUsage, Quota, Strategy } from './rows.ts'
import type { Settings } from '../queue/rows.ts'
import { Refusal } from '../refusal.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** Generous: they are there so that nobody fills the disk by accident. */
const QUOTA_DEFAULT: Quota = { versions: 1_000_000, bytes: 1024 ** 3 }

const DEFAULTS: MemorySettings = {
  key: 'memory',
  strategies: {},
  quotas: { scope: QUOTA_DEFAULT, agent: QUOTA_DEFAULT },
}

function memorySettings(view: View): MemorySettings {
  return view.get('memory_settings', 'memory') ?? DEFAULTS
}

/** Settings of memory, by their path in config.json. */
const MEMORY_ROWS: SettingRows = {
  get(view, [, section, name = '', field]) {
    const { strategies, quotas } = memorySettings(view)
    if (section === 'strategies') return Object.hasOwn(strategies, name) ? strategies[name]! : null
    return quotas[name as 'scope' | 'agent'][field as keyof Quota]
  },
  put(view, [, section, name = '', field], value) {
    const { strategies, quotas } = memorySettings(view)
    if (section === 'strategies') {
      const { [name]: _, ...others } = strategies
      const said = value === undefined ? others : { ...others, [name]: value as Strategy }
      view.put('memory_settings', { key: 'memory', strategies: said, quotas })
      return
    }
    const of = name as 'scope' | 'agent'
    const number = value ?? QUOTA_DEFAULT[field as keyof Quota]
    const changed = { ...quotas, [of]: { ...quotas[of], [field as string]: number } }
    view.put('memory_settings', { key: 'memory', strategies, quotas: changed })
  },
}

/** Makes the configuration true for all who use the store. */
export function applyMemorySettings(view: View, source: string, settings: Settings): void {
  applyHostSettings(view, { part: 'memory', source, settings }, MEMORY_ROWS)
}

/** Whether this host has named exactly these settings before. */
export const hasMemorySettings = (view: View, source: string, settings: Settings) =>
  isSaidAlready(view, { part: 'memory', source, settings })

/** Settings of memory that some config.json names, and whose word each is. */
export const memoryInForce = (view: View) => settingsInForce(view, 'memory', MEMORY_ROWS)

/** How conflicts of a scope are merged: by its own name, by the longest `prefix*`, by `default`. */
export function strategyOf(view: View, scope: string): Strategy {
  const { strategies } = memorySettings(view)
  const fits = Object.keys(strategies).filter((each) =>
    each.endsWith('*') ? scope.startsWith(each.slice(0, -1)) : each === scope,
  )
  // A name without a star says more than any prefix.
  const weight = (each: string) => (each === scope ? Number.POSITIVE_INFINITY : each.length)
  const best = fits.toSorted((a, b) => weight(b) - weight(a))[0] ?? 'default'
  return strategies[best] ?? 'manual'
}

const scopeUsage = (scope: string) => keyOf('scope', scope)
/** Subagents count with the agent they belong to: an id more costs nothing to invent. */
const agentUsage = (agent: string) => keyOf('agent', agent.split('/')[0]!)

export function usageKeys(scope: string, agent: string): string[] {
  return [scopeUsage(scope), agentUsage(agent)]
}

const usageAt = (view: View, key: string): MemoryUsage =>
  view.get('memory_usage', key) ?? { key, versions: 0, bytes: 0 }

/** Counts versions and bytes that were added, or (below zero) removed. */
export function countUsage(
  view: View,
  { scope, agent }: { scope: string; agent: string },
  versions: number,
  bytes: number,
): void {
  for (const key of usageKeys(scope, agent)) {
    const used = usageAt(view, key)
    view.put('memory_usage', {
      key,
      versions: Math.max(0, used.versions + versions),
      bytes: Math.max(0, used.bytes + bytes),
    })
  }
}

/** Refuses (`too_large`) what would not fit into the quota of the scope, or of the agent. */
export function refuseOverQuota(view: View, scope: string, agent: string, bytes: number): void {
  const { quotas } = memorySettings(view)
  const bounds = [
    { of: scope, quota: quotas.scope, used: usageAt(view, scopeUsage(scope)) },
    { of: agent, quota: quotas.agent, used: usageAt(view, agentUsage(agent)) },
  ]
  for (const { of, quota, used } of bounds) {
    if (used.versions < quota.versions && used.bytes + bytes <= quota.bytes) continue
    const what = `${used.versions} of ${quota.versions} versions, ${used.bytes} of ${quota.bytes}`
    throw new Refusal('too_large', `The memory quota of ${of} is full (${what} bytes)`, {
      next: 'Make room: leasehold memory prune. An admin can raise memory.quotas in config.json.',
      details: { of, versions: used.versions, bytes: used.bytes, quota },
    })
  }
}
