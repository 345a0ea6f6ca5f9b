import { describe, test } from 'vitest'
import { expectParity, expectSame, PATIENCE_MS, reference } from './parity_compare.ts'
import { DOORS } from './parity_doors.ts'

/**
 * A process per call takes long and adds little: a command that asks the daemon is HTTP, and one on
 * the store makes the call that is made without any door. `npm run faults` plays them too.
 */
const LONG = process.env['FAULTS'] === 'long'
const PLAYED = Object.keys(DOORS).filter((door) => LONG || !door.startsWith('commands '))

describe('on PostgreSQL the same call has the same outcome as on SQLite', () => {
  test('without any door', async () => expectSame(await reference('postgres')), PATIENCE_MS)

  for (const door of PLAYED) {
    test(`through ${door}`, () => expectParity(door, 'postgres'), PATIENCE_MS)
  }
})
