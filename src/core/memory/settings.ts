import type { Strategy } from '../schema/memory.ts'
import { applyHostSettings, isSaidAlready, settingPath } from '../queue/host_settings.ts'
import type { Settings } from '../queue/rows.ts'
import type { View } from '../view.ts'

/** Makes the configuration true for all who use the store. */
export function applyMemorySettings(view: View, source: string, settings: Settings): void {
  applyHostSettings(view, { part: 'memory', source, settings })
}

/** Whether this host has named exactly these settings before. */
export const hasMemorySettings = (view: View, source: string, settings: Settings) =>
  isSaidAlready(view, { part: 'memory', source, settings })

/** By scope, as `memory.strategies` of config.json names it: `project:web`, `project:*`, `default`. */
function strategiesIn(view: View): Record<string, Strategy> {
  // In older stores two may name a scope: the file that was read last counts.
  const rows = [...view.scan('host_settings_of', 'memory')].toSorted(
    (a, b) => a.read_ms - b.read_ms,
  )
  const said = rows.flatMap(({ settings }) => Object.entries(settings))
  return Object.fromEntries(said.map(([key, value]) => [settingPath(key)[2], value as Strategy]))
}

/** How conflicts of a scope are merged: by its own name, by the longest `prefix*`, by `default`. */
export function strategyOf(view: View, scope: string): Strategy {
  const strategies = strategiesIn(view)
  const fits = Object.keys(strategies).filter((each) =>
    each.endsWith('*') ? scope.startsWith(each.slice(0, -1)) : each === scope,
  )
  // A name without a star says more than any prefix.
  const weight = (each: string) => (each === scope ? Number.POSITIVE_INFINITY : each.length)
  const best = fits.toSorted((a, b) => weight(b) - weight(a))[0] ?? 'default'
  return strategies[best] ?? 'manual'
}
