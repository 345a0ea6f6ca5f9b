import { afterAll } from 'vitest'
import { EmptiedPostgres } from '../support/postgres.ts'
import { ROUNDS } from '../support/processes.ts'
import { exerciseStore, type Part } from './exercise.ts'

/**
 * The rules are the same everywhere, and SQLite plays all of it. These write every table and ask
 * every index that the exercises do, and those where the writer is in question or the order.
 */
const DAILY: Part[] = [
  'locks',
  'lines',
  'deadlocks',
  'circles',
  'hand_off',
  'tasks',
  'queue_order',
  'queue_limits',
  'queue_resources',
  'landing',
  'reservations',
  'stuck',
  'retention',
  'writer',
  'memory',
  'memory_siblings',
]

const emptied = new EmptiedPostgres()
afterAll(() => emptied.close())

exerciseStore('PostgreSQL', emptied.open, {
  clear: () => emptied.clear(),
  ...(ROUNDS === 1 && { parts: DAILY }),
})
