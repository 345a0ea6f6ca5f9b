import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { gitIn } from '../support/git_repo.ts'
import { argvOf, environ } from '../support/dispatching.ts'
import { isAlive, sandbox, until } from '../support/processes.ts'

test('without Leasehold edits are lost and tasks done twice; with it neither', async () => {
  const place = sandbox()
  const env = {
    TMPDIR: place.folder,
    LEASEHOLD_STORE: 'file:elsewhere',
    LEASEHOLD_TRUST_CONFIG: undefined,
  }
  const told = await place.ok(['demo', '--seconds', '2', '--keep'], { env })
  const { without, with: kept, branches } = told
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

  const reasons = ['it conflicts with main in src/price.ts']
  expect(branches).toEqual({ landed: 3, came_back: 1, reasons, lines_lost: 0 })
  const main = (...args: string[]) => gitIn(join(told.folder, 'branches'), ...args)
  expect(main('show', 'main:src/price.ts').split('\n')).toEqual([
    ...['// src/price.ts', '// the line of price', '// the line of sale'],
  ])
  expect(main('status', '--porcelain')).toBe('')
})

test('interrupted while agents are on branches, it leaves no process and no folder', async () => {
  const place = sandbox()
  const demo = ['demo', '--seconds', '1', '--agents', '2']
  const running = place.start(demo, { env: { TMPDIR: place.folder } })
  await running.said(/sale +works on leasehold\/sale-1/)
  running.kill('SIGINT')
  const { code, err } = await running.ended
  expect(code, err).toBe(130)
  // Nothing of its server is at work any more when its store is removed.
  expect(err).not.toContain('could not be settled')
  // A runner that has told how its run ended is gone a moment later.
  await until('no process is left', () => processesIn(place.folder).length === 0)
  expect(readdirSync(place.folder)).toEqual(['home'])
})

/** Runners and agents do not carry the mark of the place, but all that they are given is in it. */
function processesIn(folder: string): number[] {
  const pids = readdirSync('/proc').map(Number)
  const isIn = (pid: number) => `${environ(pid)} ${argvOf(pid)}`.includes(folder)
  return pids.filter((pid) => pid > 0 && pid !== process.pid && isAlive(pid) && isIn(pid))
}

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
