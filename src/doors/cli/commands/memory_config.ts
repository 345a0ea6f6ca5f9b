import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../../core/attempt.ts'
import { applyMemorySettings, hasMemorySettings } from '../../../core/memory/settings.ts'
import { Refusal } from '../../../core/refusal.ts'
import { CONFIG_FILE, folderOf, type Place } from '../../../stores/open.ts'
import type { Store } from '../../../stores/writer/store.ts'

/**
 * Without a daemon, a command that writes a note on the store itself first applies what config.json
 * says of memory. A file that says nothing of it changes nothing.
 */
export async function settleMemory(
  place: Place,
  env: NodeJS.ProcessEnv,
  store: Store,
): Promise<void> {
  const folder = folderOf(place)
  if (!store.isDatabase || !textOf(join(folder, CONFIG_FILE)).includes('"memory"')) return
  const { readConfig } = await import('../../../daemon/config/config.ts')
  const { memorySettingsOf, sourceOn } = await import('../../../daemon/config/shared_settings.ts')
  try {
    const settings = memorySettingsOf(readConfig(folder, env))
    const source = sourceOn(store)
    if (await store.read((view) => hasMemorySettings(view, source, settings))) return
    await store.write((view) => applyMemorySettings(view, source, settings))
  } catch (error) {
    // What is wrong with the file, leasehold doctor tells; a note is no worse for it.
    if (!(error instanceof Refusal) || error.code !== 'invalid') throw error
  }
}

const textOf = (file: string) => attempt(() => readFileSync(file, 'utf8'), '')
