import { expect, test } from 'vitest'
import { ROUNDS, sandbox, stateOf, TEST_CLI, until } from '../support/processes.ts'
import { Checkout } from './checkouts.ts'

const program = [process.execPath, TEST_CLI]

function checkout(name: string, place = sandbox()): Checkout {
  const repo = new Checkout(place, name)
  repo.write('.claude/settings.json', '{ "model": "opus" }')
  repo.write('AGENTS.md', '# Ours')
  repo.write('.git/hooks/pre-commit', '#!/usr/bin/env node\n', 0o755)
  return repo
}

/** Stops it at a step and kills it there; false when it ends without coming there. */
async function killedAt(repo: Checkout, args: string[], at: string): Promise<boolean> {
  const running = repo.start(args, { program, env: { LEASEHOLD_STOP_AT: at }, input: '' })
  let isOver = false
  void running.ended.then(() => (isOver = true))
  await until(`${at} is reached`, () => isOver || stateOf(running.pid) === 'T')
  const isThere = !isOver
  running.kill('SIGKILL')
  await running.ended
  return isThere
}

/** All but what the manifest says about paths, which differ, and what a killed one left in it. */
const seen = (repo: Checkout) =>
  Object.fromEntries(
    Object.entries(repo.snapshot()).filter(([name]) => !name.startsWith('.leasehold/init')),
  )

/** Every third step in a short run, all of them in a long one. */
const EACH = ROUNDS > 1 ? 1 : 3
const KINDS = ROUNDS > 1 ? ['noted', 'written'] : ['noted']

test('killed at any step, init can be run again, or undone', async () => {
  const place = sandbox()
  const repo = checkout('repo', place)
  const before = repo.snapshot()
  expect(await repo.init(['--yes'], { program })).toMatchObject({ code: 0 })
  const after = seen(repo)
  expect(await repo.init(['--undo', '--yes'], { program })).toMatchObject({ code: 0 })
  expect(repo.snapshot()).toEqual(before)
  let steps = 0
  for (const kind of KINDS) {
    for (let i = 0; ; i += EACH) {
      if (!(await killedAt(repo, ['--yes'], `init.${kind}.${i}`))) break
      steps++
      expect(await repo.init(['--yes'], { program }), `${kind} ${i}`).toMatchObject({ code: 0 })
      expect(seen(repo), `${kind} ${i}`).toEqual(after)
      expect(await repo.init(['--undo', '--yes'], { program })).toMatchObject({ code: 0 })
      expect(repo.snapshot(), `${kind} ${i}`).toEqual(before)
    }
    // The last run came to its end.
    expect(await repo.init(['--undo', '--yes'], { program })).toMatchObject({ code: 0 })
  }
  expect(steps).toBeGreaterThan(2)
})

test('killed at any step of either, undo gives back what was there', async () => {
  const repo = checkout('repo')
  const before = repo.snapshot()
  let steps = 0
  for (let i = 1; ; i += EACH) {
    const isHalf = await killedAt(repo, ['--yes'], `init.noted.${i}`)
    if (!isHalf) await repo.init(['--yes'], { program })
    if (await killedAt(repo, ['--undo', '--yes'], 'undo.written.1')) steps++
    expect(await repo.init(['--undo', '--yes'], { program })).toMatchObject({ code: 0 })
    expect(repo.snapshot(), String(i)).toEqual(before)
    if (!isHalf) break
  }
  expect(steps).toBeGreaterThan(1)
})
