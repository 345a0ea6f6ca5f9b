import type { MemorySettings, Strategy } from '../schema/memory.ts'
import { applyHostSettings, isSaidAlready, type SettingRows } from '../queue/host_settings.ts'
import type { Settings } from '../queue/rows.ts'
import type { View } from '../view.ts'

const DEFAULTS: MemorySettings = { key: 'memory', strategies: {} }

function memorySettings(view: View): MemorySettings {
  return view.get('memory_settings', 'memory') ?? DEFAULTS
}

/** Settings of memory, by their path in config.json: `memory.strategies.SCOPE`. */
const MEMORY_ROWS: SettingRows = {
  get(view, [, , scope = '']) {
    const { strategies } = memorySettings(view)
    return Object.hasOwn(strategies, scope) ? strategies[scope]! : null
  },
  put(view, [, , scope = ''], value) {
    const { [scope]: _, ...others } = memorySettings(view).strategies
    const strategies = value === undefined ? others : { ...others, [scope]: value as Strategy }
    view.put('memory_settings', { key: 'memory', strategies })
  },
}

/** Makes the configuration true for all who use the store. */
export function applyMemorySettings(view: View, source: string, settings: Settings): void {
  applyHostSettings(view, { part: 'memory', source, settings }, MEMORY_ROWS)
}

/** Whether this host has named exactly these settings before. */
export const hasMemorySettings = (view: View, source: string, settings: Settings) =>
  isSaidAlready(view, { part: 'memory', source, settings })

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
