import { join } from 'node:path'
import { expect } from 'vitest'
import type { Caller } from '../../src/core/caller.ts'
import { Refusal, type RefusalCode } from '../../src/core/refusal.ts'
import { FileBackend } from '../../src/stores/file/backend.ts'
import type { Machine } from '../../src/machine/machine.ts'
import { SqliteBackend } from '../../src/stores/sqlite/backend.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { MemoryBackend } from './memory_backend.ts'

export { removeTemporaryFolders, temporaryFolder } from './memory_folder.ts'
export { MachineSim } from './machine_sim.ts'
export { FaultyBackend, MemoryBackend } from './memory_backend.ts'
export { Verbs } from './verbs.ts'

/** A caller with a given id and nothing else known about it. */
export function callerOf(agent: string, more: Partial<Caller> = {}): Caller {
  return { agent, given: true, process: null, admin: false, under: null, ...more }
}

/** Opens the store at `dir`; opened twice, two writers share one place. */
export type Open = (dir: string, machine: Machine) => Store

export const openMemory: Open = (dir, machine) => new Store(new MemoryBackend(dir), machine)

export const openSqlite: Open = (dir, machine) => new Store(sqliteBackend(dir), machine)

export function sqliteBackend(dir: string): SqliteBackend {
  return new SqliteBackend({ path: join(dir, 'leasehold.db'), busy_timeout_ms: 5_000 })
}

export const openFile: Open = (dir, machine) => new Store(fileBackend(dir), machine)

export function fileBackend(dir: string): FileBackend {
  return new FileBackend({ dir, busy_timeout_ms: 5_000 })
}

/** Expects a refusal with this code, and returns it for a closer look. */
export async function expectRefusal(asked: Promise<unknown>, code: RefusalCode): Promise<Refusal> {
  const outcome = await asked.then(
    (answer) => ({ answer }),
    (error: unknown) => error,
  )
  if (outcome instanceof Refusal && outcome.code === code) return outcome
  expect(outcome).toMatchObject({ name: 'Refusal', code })
  throw new Error('not reached')
}
