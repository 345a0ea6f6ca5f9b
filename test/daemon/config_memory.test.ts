import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/daemon/config/config.ts'
import { expectRefusal, temporaryFolder } from '../support/helpers.ts'

function read(memory: unknown) {
  const folder = join(temporaryFolder(), '.leasehold')
  mkdirSync(folder)
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ memory }))
  return readConfig(folder, {}).memory
}

test('config.json says how conflicts of a scope are merged', async () => {
  const strategies = {
    'project:*': 'union',
    global: 'text',
    default: 'newest',
    'user:al': 'manual',
  }
  const memory = read({ strategies })
  expect(memory.strategies).toEqual(strategies)
  const wrong = { web: 'text', 'project:web': 'last' }
  const asked = Promise.resolve().then(() => read({ strategies: wrong }))
  const { details } = await expectRefusal(asked, 'invalid')
  expect((details['problems'] as string[]).toSorted()).toEqual([
    expect.stringContaining('must be one of manual, newest'),
    expect.stringContaining('web is no scope'),
  ])
})
