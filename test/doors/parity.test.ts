import { describe, expect, test } from 'vitest'
import { operations } from '../../src/operations/registry.ts'
import { codeOf, expectParity, LONG, PATIENCE_MS, reference } from './parity_compare.ts'
import { DOORS } from './parity_doors.ts'
import { UNREACHED } from './parity_script.ts'

describe('the calls that are compared', () => {
  test('every operation succeeds once, and refuses in every way that it declares', async () => {
    const steps = await reference()
    for (const { name, refuses } of operations) {
      const seen = new Set(steps.filter((step) => step.name === name).map((s) => codeOf(s.outcome)))
      const excused = Object.keys(UNREACHED[name as keyof typeof UNREACHED] ?? {})
      const missing = ['ok', ...refuses].filter(
        (code) => !seen.has(code) && !excused.includes(code),
      )
      expect({ name, missing }).toEqual({ name, missing: [] })
    }
    expect(steps.filter(({ outcome }) => codeOf(outcome) === 'internal')).toEqual([])
  })
})

/**
 * A process per call takes long. Commands that ask the daemon differ from those on the store by one
 * request over HTTP, which is played on its own; `npm run faults` plays them too.
 */
const PLAYED = Object.keys(DOORS).filter((door) => LONG || door !== 'commands through the daemon')

describe('the same call has the same outcome', () => {
  for (const door of PLAYED) {
    test(`through ${door}`, () => expectParity(door, 'sqlite'), PATIENCE_MS)
  }
})
