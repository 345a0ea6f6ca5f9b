import { settingKey } from '../../core/queue/host_settings.ts'
import type { Offer } from '../../core/queue/resource.ts'
import type { Settings, SettingValue } from '../../core/queue/rows.ts'
import type { Store } from '../../stores/writer/store.ts'
import type { Config } from './config.ts'

/**
 * Whose word a setting is that counts for all who use a store: where other hosts may use it too,
 * that of the host; else there is one config.json, whatever the host is called today.
 */
export const sourceOn = (store: Pick<Store, 'isShared' | 'host'>) =>
  store.isShared ? store.host() : 'config.json'

/** Limits and weights that a config.json names. What it does not name is left to others. */
export function queueSettingsOf(config: Config): Settings {
  const { per_user_serialization, pool, projects, groups, users, landing } = config
  const said: Tree = {}
  for (const [name, { limit }] of Object.entries(projects)) said[name] = { limit }
  for (const [name, { onto, check, auto }] of Object.entries(landing)) {
    const limit = projects[name]?.limit
    said[name] = { limit, land: { onto, checks: check !== undefined, auto } }
  }
  return flat({ per_user_serialization, pool, projects: said, groups, users })
}

/** What this host lends, and to runs of which projects. */
export const offersIn = ({ resources, projects }: Config): Offer[] =>
  Object.entries(resources).map(([name, offered]) => {
    const lent = Object.entries(projects).filter(([, each]) => each.resources.includes(name))
    return { name, offered, projects: lent.map(([project]) => project) }
  })

export const memorySettingsOf = ({ memory: { strategies } }: { memory: { strategies: Tree } }) =>
  flat({ memory: { strategies } })

interface Tree {
  [name: string]: Tree | SettingValue | undefined
}

function flat(tree: Tree): Settings {
  return Object.fromEntries(leavesOf(tree, []))
}

function* leavesOf(tree: Tree, path: string[]): Generator<[string, SettingValue]> {
  for (const [name, value] of Object.entries(tree)) {
    const here = [...path, name]
    if (typeof value === 'object' && value !== null) yield* leavesOf(value, here)
    else if (value !== undefined) yield [settingKey(...here), value]
  }
}
