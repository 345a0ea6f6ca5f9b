import type { HostSettings } from '../schema/queue.ts'
import { planted } from '../planted.ts'
import type { Settings, SettingValue } from './rows.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** The key of a setting: where it stands in config.json. */
export const settingKey = (...path: string[]) => keyOf(...path)
export const settingPath = (key: string) => key.split('\n')

/**
 * Where rules have rows of their own for settings: how one is read from them, and put there;
 * undefined: its default.
 */
export interface SettingRows {
  get(view: View, path: string[]): SettingValue
  put(view: View, path: string[], value: SettingValue | undefined): void
}

export type NewSettings = Pick<HostSettings, 'part' | 'source' | 'settings'>

const rowKey = ({ part, source }: Pick<HostSettings, 'part' | 'source'>) => keyOf(part, source)

/** Whether this file has said the same before, and no other has spoken of any of it since. */
export function isSaidAlready(view: View, said: NewSettings): boolean {
  const before = view.get('host_settings', rowKey(said))?.settings ?? {}
  const [old, now] = [Object.entries(before), Object.keys(said.settings)]
  return old.length === now.length && old.every(([key, value]) => said.settings[key] === value)
}

/**
 * Makes true what a config.json names: a setting belongs to the file that was the last to name it.
 * What this file has of its own and names no more goes back to its default, unless a person has
 * changed it since. All else belongs to others, who may be on other hosts, and stays.
 */
export function applyHostSettings(view: View, said: NewSettings, rows?: SettingRows): void {
  const key = rowKey(said)
  const before: Settings = { ...view.get('host_settings', key)?.settings }
  for (const other of [...view.scan('host_settings_of', said.part)]) {
    if (other.key === key) continue
    if (planted('S8')) Object.assign(before, other.settings)
    takeOver(view, other, said.settings)
  }
  if (rows) putRows(view, before, said.settings, rows)
  putOwn(view, { key, ...said, read_ms: view.now })
}

function putRows(view: View, before: Settings, now: Settings, rows: SettingRows): void {
  for (const [setting, value] of Object.entries(now)) {
    const path = settingPath(setting)
    if (rows.get(view, path) !== value) rows.put(view, path, value)
  }
  for (const [setting, value] of Object.entries(before)) {
    const path = settingPath(setting)
    if (Object.hasOwn(now, setting) || rows.get(view, path) !== value) continue
    rows.put(view, path, undefined)
  }
}

/** What another file names now is its own from here on. */
function takeOver(view: View, other: HostSettings, named: Settings): void {
  const kept = Object.entries(other.settings).filter(([setting]) => !Object.hasOwn(named, setting))
  putOwn(view, { ...other, settings: Object.fromEntries(kept) })
}

/** Hosts with a new name at every start would leave a row each: one without settings goes. */
function putOwn(view: View, own: HostSettings): void {
  if (Object.keys(own.settings).length > 0) view.put('host_settings', own)
  else view.remove('host_settings', own.key)
}
