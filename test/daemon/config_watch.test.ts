import { execFile } from 'node:child_process'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Refusal } from '../../src/core/refusal.ts'
import type { Config } from '../../src/daemon/config/config.ts'
import { watchConfig } from '../../src/daemon/config/watch.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { fileOf, stateFolder, write } from './config_file.ts'

describe('a watched config', () => {
  /** Watches, and keeps what it is told. Reads are counted where reading asks the environment. */
  function watched(said?: unknown) {
    const folder = stateFolder(said)
    const told = { configs: [] as Config[], refusals: [] as Refusal[], reads: 0 }
    const env = {
      get LEASEHOLD_SLOTS_MAX() {
        told.reads++
        return ''
      },
    }
    const stop = watchConfig(folder, env, {
      changed: (config) => void told.configs.push(config),
      failed: (refusal) => void told.refusals.push(refusal),
    })
    onTestFinished(stop)
    return { folder, told, stop }
  }

  test('is told when the file is written, replaced or deleted', async () => {
    const { folder, told } = watched()
    write(folder, { slots: { max: 1 } })
    await until('it is written', () => told.configs.length === 1)
    writeFileSync(join(folder, '.config.json.swp'), '{"slots": {"max": 2}}')
    renameSync(join(folder, '.config.json.swp'), fileOf(folder))
    await until('it is replaced', () => told.configs.length === 2)
    rmSync(fileOf(folder))
    await until('it is deleted', () => told.configs.length === 3)
    expect(told.configs.map(({ slots }) => slots.max)).toEqual([1, 2, 4])
    expect(told.refusals).toEqual([])
  })

  test('a bad file is told as a refusal, and the settings before it stay', async () => {
    const { folder, told } = watched({ slots: { max: 1 } })
    write(folder, '{"slots": ')
    await until('it is refused', () => told.refusals.length === 1)
    expect(told.refusals[0]).toMatchObject({ code: 'invalid', details: { file: fileOf(folder) } })
    const { reads } = told
    write(folder, { slots: { max: 1 } })
    await until('it is read again', () => told.reads > reads)
    write(folder, { slots: { max: 2 } })
    await until('it is changed', () => told.configs.length === 1)
    expect(told.configs[0]!.slots.max).toBe(2)
  })

  test('a file that was bad from the start is told when it is mended', async () => {
    const { folder, told } = watched('{')
    expect(told).toMatchObject({ configs: [], refusals: [] })
    write(folder, {})
    await until('it is mended', () => told.configs.length === 1)
  })

  test('is told nothing when the file says the same in other words', async () => {
    const { folder, told } = watched({ slots: { max: 1 }, pool: { limit: 2 } })
    const { reads } = told
    write(folder, '{ "pool": { "limit": 2 }, "users": {},\n "slots": { "max": 1 } }')
    await until('it is read again', () => told.reads > reads)
    expect(told).toMatchObject({ configs: [], refusals: [] })
  })

  test('is told nothing of other files, nor after its end', async () => {
    const { folder, told, stop } = watched()
    const { reads } = told
    const other = watched()
    stop()
    write(folder, { slots: { max: 1 } })
    writeFileSync(join(other.folder, 'leasehold.db'), 'x')
    const last = watched()
    write(last.folder, { slots: { max: 1 } })
    await until('a later change is told', () => last.told.configs.length === 1)
    expect([told.reads, other.told.reads]).toEqual([reads, 1])
    expect([told.configs, other.told.configs]).toEqual([[], []])
  })

  test('a folder that cannot be watched is told as a refusal', () => {
    const refusals: Refusal[] = []
    const folder = join(temporaryFolder(), 'missing')
    const failed = (refusal: Refusal) => void refusals.push(refusal)
    watchConfig(folder, {}, { changed: () => {}, failed })()
    expect(refusals).toMatchObject([{ code: 'unavailable' }])
    expect(refusals[0]!.message).toContain('ENOENT')
  })

  test('keeps no process alive', async () => {
    const folder = stateFolder({})
    const module = fileURLToPath(new URL('../../src/daemon/config/watch.ts', import.meta.url))
    const script = `
      import { writeFileSync } from 'node:fs'
      import { watchConfig } from ${JSON.stringify(module)}
      watchConfig(${JSON.stringify(folder)}, {}, { changed() {}, failed() {} })
      writeFileSync(${JSON.stringify(fileOf(folder))}, '{"slots": {"max": 1}}')
      console.log('watches')`
    const argv = ['--import', 'tsx', '--input-type=module', '-e', script]
    const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: 60_000 })
    expect(stdout).toBe('watches\n')
  })
})
