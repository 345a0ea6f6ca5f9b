import type { Backend } from '../../src/stores/port.ts'
import { fileBackend, MemoryBackend, sqliteBackend } from '../support/helpers.ts'
import { WholePostgres } from '../support/postgres.ts'

/** Where a simulation can keep its rows. Opened twice on one folder, two writers share it. */
export const BACKENDS = {
  memory: (place: string): Backend => new MemoryBackend(place),
  sqlite: (dir: string): Backend => sqliteBackend(dir),
  file: (dir: string): Backend => fileBackend(dir),
  postgres: (dir: string): Backend => new WholePostgres(dir),
}

export type StoreName = keyof typeof BACKENDS
