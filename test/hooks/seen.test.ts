import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  Claude,
  expectDenied,
  expectSilent,
  heard,
  repository,
  SESSIONS,
  TEST_LEASEHOLD,
} from './agents.ts'

const CHANGED = /a\.ts was changed since you last read or wrote it.*Next: Read it again/s

/** What Claude Code asks before it writes a whole file, and tells after it has read one. */
const write = (agent: Claude, repo: string) =>
  agent.before('Write', { file_path: join(repo, 'a.ts'), content: 'all of it' })
const after = (agent: Claude, repo: string, tool_name: string) =>
  agent.fire('PostToolUse', {
    tool_name,
    tool_input: { file_path: join(repo, 'a.ts') },
    tool_response: {},
    tool_use_id: 'toolu_01ABC',
  })

/** Over what another has not committed yet: that is kept, and said. */
async function writeOver(agent: Claude, repo: string): Promise<void> {
  expect(heard(await write(agent, repo))).toContain('(a.ts): they were saved first')
}

/** Another agent's edit, from its hook to the end of its turn. */
async function editBy(agent: Claude, repo: string): Promise<void> {
  expectSilent(await agent.edit('a.ts'))
  writeFileSync(join(repo, 'a.ts'), `${readFileSync(join(repo, 'a.ts'), 'utf8')}more\n`)
  expectSilent(await after(agent, repo, 'Edit'))
  expectSilent(await agent.stop())
}

describe('a whole file that others have changed since', () => {
  test('is not written before it was read again; the agent is told once', async () => {
    const { repo, a, b } = repository()
    expectSilent(await after(a, repo, 'Read'))
    expectSilent(await write(a, repo))
    expectSilent(await a.stop())
    await editBy(b, repo)
    expect(expectDenied(await write(a, repo))).toMatch(CHANGED)
    await writeOver(a, repo)
  })

  test('is written after a look, and after edits of one’s own', async () => {
    const { repo, a, b } = repository()
    expectSilent(await after(a, repo, 'Read'))
    await editBy(b, repo)
    expectSilent(await after(a, repo, 'Read'))
    await writeOver(a, repo)
    await editBy(a, repo)
    await writeOver(a, repo)
  })

  test('is known to a conversation that goes on in another process', async () => {
    const { place, repo, a, b } = repository()
    expectSilent(await after(a, repo, 'Read'))
    expectSilent(await a.end())
    await a.die()
    await editBy(b, repo)
    const resumed = new Claude(place, repo, SESSIONS.a)
    expect(expectDenied(await write(resumed, repo))).toMatch(CHANGED)
  })

  test('is written over by a hook with a planted bug', async () => {
    const { repo, a, b } = repository()
    expectSilent(await after(a, repo, 'Read'))
    await editBy(b, repo)
    const input = {
      session_id: a.session,
      cwd: repo,
      hook_event_name: 'PreToolUse',
      tool_name: 'Write',
      tool_input: { file_path: join(repo, 'a.ts'), content: 'x' },
    }
    const ask = `${TEST_LEASEHOLD} hook claude pre-tool-use`
    const said = await a.sh(ask, JSON.stringify(input), { LEASEHOLD_PLANT: 'S9 seen' })
    expect(heard(said)).toContain('they were saved first')
  })
})
