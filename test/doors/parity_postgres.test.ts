import { describe, test } from 'vitest'
import { expectParity, expectSame, LONG, PATIENCE_MS, withoutDoor } from './parity_compare.ts'
import { DOORS } from './parity_doors.ts'

/** Doors do not know which store they stand before. `npm run faults` plays them all the same. */
const PLAYED = Object.keys(DOORS).filter((door) => LONG || door === 'HTTP, POST')

describe('on PostgreSQL the same call has the same outcome as on SQLite', () => {
  test('without any door', async () => expectSame(await withoutDoor('postgres')), PATIENCE_MS)

  for (const door of PLAYED) {
    test(`through ${door}`, () => expectParity(door, 'postgres'), PATIENCE_MS)
  }
})
