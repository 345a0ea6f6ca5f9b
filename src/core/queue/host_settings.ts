import type { HostSettings } from '../schema/queue.ts'
import { planted } from '../planted.ts'
import { nameOfHost, type Settings, type SettingValue } from './rows.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** The key of a setting: where it stands in config.json. */
export const settingKey = (...path: string[]) => keyOf(...path)
const settingPath = (key: string) => key.split('\n')

/** How a setting is read from the rows that rules read, and put there; undefined: its default. */
export interface SettingRows {
  get(view: View, path: string[]): SettingValue
  put(view: View, path: string[], value: SettingValue | undefined): void
}

export type NewSettings = Pick<HostSettings, 'part' | 'source' | 'settings'>

const rowKey = ({ part, source }: Pick<HostSettings, 'part' | 'source'>) => keyOf(part, source)

/** Whether this file has said the same before. */
export function isSaidAlready(view: View, said: NewSettings): boolean {
  const before = view.get('host_settings', rowKey(said))?.settings
  const [old, now] = [Object.entries(before ?? {}), Object.entries(said.settings)]
  const isSame = old.every(([key, value]) => said.settings[key] === value)
  return before !== undefined && old.length === now.length && isSame
}

/**
 * Makes true what a host's config.json names, and takes back what it named before, is still in
 * force and is named no more: then another host's word counts, or the default. All else belongs
 * to others, who may be on other hosts, and stays.
 */
export function applyHostSettings(view: View, said: NewSettings, rows: SettingRows): void {
  const key = rowKey(said)
  const before = view.get('host_settings', key)?.settings ?? {}
  const others = byAge(view, said.part).filter((each) => each.key !== key)
  for (const [setting, value] of Object.entries(said.settings)) {
    const path = settingPath(setting)
    if (rows.get(view, path) !== value) rows.put(view, path, value)
  }
  const dropped = planted('S8') ? Object.assign({}, ...others.map(settingsOf), before) : before
  for (const [setting, value] of Object.entries(dropped as Settings)) {
    const path = settingPath(setting)
    if (Object.hasOwn(said.settings, setting) || rows.get(view, path) !== value) continue
    const other = others.findLast(({ settings }) => Object.hasOwn(settings, setting))
    rows.put(view, path, planted('S8') ? undefined : other?.settings[setting])
  }
  view.put('host_settings', { key, ...said, read_ms: view.now })
}

const settingsOf = ({ settings }: HostSettings) => settings

/** The one whose file was read last comes last. */
function byAge(view: View, part: HostSettings['part']): HostSettings[] {
  return [...view.scan('host_settings_of', part)].toSorted((a, b) => a.read_ms - b.read_ms)
}

/**
 * Forgets what a host said that is gone, if another one names all of it: hosts with a new name at
 * every start would leave a row each. What it set is in force as before.
 */
export function inheritSettings(
  view: View,
  { part, source, settings }: NewSettings,
  isGone: (source: string) => boolean,
): void {
  for (const each of byAge(view, part)) {
    const isNamed = Object.keys(each.settings).every((key) => Object.hasOwn(settings, key))
    if (each.source !== source && isNamed && isGone(each.source)) {
      view.remove('host_settings', each.key)
    }
  }
}

/**
 * Every setting that some config.json names: what is in force, who says so, and who, as long as
 * it is there, says something else.
 */
export function settingsInForce(
  view: View,
  part: HostSettings['part'],
  rows: SettingRows,
  isGone: (source: string) => boolean = () => false,
) {
  const said = byAge(view, part)
  const keys = new Set(said.flatMap(({ settings }) => Object.keys(settings)))
  return [...keys].toSorted().map((key) => {
    const path = settingPath(key)
    const value = rows.get(view, path)
    const named = said.filter(({ settings }) => Object.hasOwn(settings, key))
    const [agree, differ] = [
      named.filter(({ settings }) => settings[key] === value),
      named.filter(({ settings, source }) => settings[key] !== value && !isGone(source)),
    ]
    return {
      setting: path.join('.'),
      value,
      /** None: a person set it since, by `queue limit`. */
      set_by: agree.map(({ source }) => nameOfHost(source)),
      overruled: differ.map(({ source, settings }) => ({
        source: nameOfHost(source),
        value: settings[key] as SettingValue,
      })),
    }
  })
}

export type SettingInForce = ReturnType<typeof settingsInForce>[number]
