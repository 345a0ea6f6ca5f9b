import { afterEach, describe, expect, test } from 'vitest'
import { plant, planted } from '../../src/core/planted.ts'
import type { StoreName } from './backends.ts'
import { Broken } from './broken.ts'
import { simulate } from './simulate.ts'

/** A few show what goes well; what goes wrong must be met by one of these, or of some more. */
const SEEDS = [1, 2, 3]
const MORE_SEEDS = [...SEEDS, 4, 5, 6, 7, 8]
const STEPS = 300

/** The promise that the first of a few short runs finds broken; undefined when all of them pass. */
async function firstBroken(store: StoreName, seeds = SEEDS): Promise<string | undefined> {
  for (const seed of seeds) {
    try {
      await simulate({ seed, steps: STEPS, store })
    } catch (error) {
      if (error instanceof Broken) return error.promise
      throw error
    }
  }
  return undefined
}

/** S4 (real kills) and S7 (request ids) have their bugs planted where they are tested. */
describe('a bug planted in', () => {
  afterEach(() => plant(undefined))

  test.each(['S1', 'S2', 'S3', 'S5', 'S6', 'S8', 'S9', 'S10', 'S12', 'R27', 'L3'] as const)(
    '%s is caught by the simulation',
    async (promise) => {
      plant(promise)
      expect(await firstBroken('memory', MORE_SEEDS)).toBe(promise)
    },
  )

  test('none of them: the simulation passes', async () => {
    plant('S1')
    plant(undefined)
    expect(planted('S1')).toBe(false)
    expect(await firstBroken('memory')).toBeUndefined()
  })

  test.each(['S1', 'S3', 'S8', 'S10'] as const)('%s is caught on SQLite too', async (promise) => {
    plant(promise)
    expect(await firstBroken('sqlite', MORE_SEEDS)).toBe(promise)
  })
})
