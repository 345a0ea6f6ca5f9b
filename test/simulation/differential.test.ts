import { describe, expect, test } from 'vitest'
import { openFile, openMemory, openSqlite } from '../support/helpers.ts'
import { openPostgres } from '../support/postgres.ts'
import { ROUNDS } from '../support/processes.ts'
import { play } from './differential.ts'

const STEPS = 150
const PATIENT = { timeout: 60_000 * ROUNDS }

const STORES = {
  SQLite: { open: openSqlite, seeds: 4 * ROUNDS },
  file: { open: openFile, seeds: 2 * ROUNDS },
  PostgreSQL: { open: openPostgres, seeds: 2 * ROUNDS },
}

describe('the same history', () => {
  test.each(Object.entries(STORES))(
    'has the same answers on %s',
    PATIENT,
    async (_, { open, seeds }) => {
      for (let seed = 1; seed <= seeds; seed += 1) {
        const expected = await play(openMemory, seed, STEPS)
        const played = await play(open, seed, STEPS)
        expect(expected.answers.length).toBeGreaterThan(STEPS)
        const at = played.answers.findIndex((answer, i) => answer !== expected.answers[i])
        expect(`seed ${seed}, ${at}: ${played.answers[at]}`).toBe(
          `seed ${seed}, -1: ${expected.answers[-1]}`,
        )
        expect(played.end).toBe(expected.end)
      }
    },
  )
})
