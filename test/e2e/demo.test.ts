import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sandbox, until } from '../support/processes.ts'

test('without Leasehold edits are lost and tasks done twice; with it neither', async () => {
  const place = sandbox()
  const env = {
    TMPDIR: place.folder,
    LEASEHOLD_STORE: 'file:elsewhere',
    LEASEHOLD_TRUST_CONFIG: undefined,
  }
  const told = await place.ok(['demo', '--seconds', '2', '--keep'], { env })
  const { without, with: kept } = told
  expect(without.edits_lost).toBeGreaterThan(0)
  expect(without.tasks_done_twice).toBeGreaterThan(0)
  expect(kept.edits_made).toBeGreaterThan(8)
  expect(kept).toMatchObject({ edits_lost: 0, tasks_done_twice: 0 })
  expect(kept.conflicts_prevented).toBeGreaterThan(0)

  // Counted once more, from the files alone.
  const inFiles = (way: string) => {
    const src = join(told.folder, way, 'src')
    const texts = readdirSync(src).map((name) => readFileSync(join(src, name), 'utf8'))
    return texts
      .join('')
      .split('\n')
      .filter((line) => line.startsWith('// agent-')).length
  }
  expect(inFiles('with')).toBe(kept.edits_made)
  expect(inFiles('without')).toBe(without.edits_made - without.edits_lost)
  expect(existsSync(place.path('elsewhere'))).toBe(false)
})

test('interrupted, it leaves no process and no folder', async () => {
  const place = sandbox()
  const running = place.start(['demo', '--seconds', '60'], { env: { TMPDIR: place.folder } })
  await running.said(/without Leasehold:/)
  await until('agents work', () => place.left().length === 9)
  running.kill('SIGINT')
  expect(await running.ended).toMatchObject({ code: 130 })
  expect(place.left()).toEqual([])
  expect(readdirSync(place.folder)).toEqual(['home'])
})
