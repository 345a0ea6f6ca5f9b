import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plant } from '../../src/core/planted.ts'
import { type Open, openMemory, openSqlite } from '../support/helpers.ts'
import { Model } from './model.ts'
import { Real, steps } from './model_steps.ts'

async function expectModelHolds(open: Open, numRuns: number): Promise<void> {
  const commands = fc.commands(steps, { maxCommands: 60, size: '+1' })
  const property = fc.asyncProperty(commands, async (commandsOfRun) => {
    const real = new Real(open)
    try {
      await fc.asyncModelRun(() => ({ model: new Model(), real }), commandsOfRun)
    } finally {
      await real.verbs.store.close()
    }
  })
  await fc.assert(property, { numRuns })
}

describe('locks and tasks do what the model of the contract does', () => {
  test('in memory', () => expectModelHolds(openMemory, 400))
  test('on SQLite', () => expectModelHolds(openSqlite, 60))

  test('and would tell if they did not', async () => {
    plant('S2')
    try {
      await expect(expectModelHolds(openMemory, 100)).rejects.toThrow('Property failed')
    } finally {
      plant(undefined)
    }
  })
})
