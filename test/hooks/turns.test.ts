import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isTurnOver } from '../../src/hooks/turns.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { AgentProcess, LEASEHOLD, repository } from './agents.ts'

/** Records of real transcripts: see test/fixtures/conversations. */
type Recorded = Record<'running' | 'over' | 'interrupted', object[] | undefined>

const RECORDINGS = new URL('../fixtures/conversations/', import.meta.url)
const recorded = (client: string): Recorded =>
  JSON.parse(readFileSync(new URL(`${client}/turns.json`, RECORDINGS), 'utf8')) as Recorded

const CLIENTS = [
  ['claude', 'claude-code-2.1.325'],
  ['codex', 'codex-0.166.0'],
  ['copilot', 'copilot-1.0.102'],
] as const

const lines = (records: object[] = []) =>
  records.map((each) => `${JSON.stringify(each)}\n`).join('')

describe.each(CLIENTS)('a turn of %s that ends without a hook', (kind, client) => {
  const { running, over, interrupted = over } = recorded(client)

  test('is known by the end of its transcript', () => {
    const path = `${temporaryFolder()}/transcript.jsonl`
    expect(isTurnOver(path)).toBe(false)
    for (const end of [over, interrupted]) {
      writeFileSync(path, lines(running))
      expect(isTurnOver(path)).toBe(false)
      // Longer than what is read of it, and cut in the middle of a record.
      appendFileSync(path, `{"type":"system","text":"${'x'.repeat(70_000)}"}\n${lines(end)}`)
      expect(isTurnOver(path)).toBe(true)
      appendFileSync(path, lines(running))
      expect(isTurnOver(path)).toBe(false)
    }
  })

  test('gives back what edits have reserved, and keeps what was asked for', async () => {
    const { place, repo } = repository()
    const agent = new AgentProcess(place, repo)
    const session_id = 'aaaaaaaa-1111-4222-8333-444444444444'
    const own = join(place.home, '.copilot/session-state', session_id)
    mkdirSync(own, { recursive: true })
    const isNamed = kind !== 'copilot'
    const transcript_path = isNamed ? place.path('transcript.jsonl') : join(own, 'events.jsonl')
    writeFileSync(transcript_path, lines(running))
    const said = { session_id, cwd: repo, ...(isNamed && { transcript_path }) }
    const patch = '*** Begin Patch\n*** Update File: a.ts\n@@\n-a\n+b\n*** End Patch\n'
    const edit =
      kind === 'codex'
        ? { tool_name: 'apply_patch', tool_input: { command: patch } }
        : { tool_name: 'Edit', tool_input: { file_path: `${repo}/a.ts` } }
    expect(await agent.hook(kind, 'pre-tool-use', { ...said, ...edit })).toMatchObject({ code: 0 })
    await agent.leasehold('reserve add b.ts')
    // Its MCP server, which is there as long as the conversation.
    const server = agent.sh(`while [ ! -e over ]; do sleep 0.05; done | ${LEASEHOLD} mcp`)
    const held = async () =>
      (await place.ok(['reserve', 'list'])).items.map(({ path }: { path: string }) => path)
    expect(await held()).toEqual(['a.ts', 'b.ts'])
    appendFileSync(transcript_path, lines(over))
    const began_ms = performance.now()
    await until('a.ts is free', async () => (await held()).join() === 'b.ts', 20_000)
    expect(performance.now() - began_ms).toBeLessThan(5_000)
    writeFileSync(`${repo}/over`, '')
    expect(await server).toMatchObject({ code: 0 })
  })
})

test.each([
  ['claude', 'stop-failure', { hook_event_name: 'StopFailure', error: 'rate_limit' }],
  ['codex', 'interrupt', { hook_event_name: 'Interrupt' }],
])('%s tells of some: %s', async (kind, event, more) => {
  const { place, repo } = repository()
  const agent = new AgentProcess(place, repo)
  const said = { session_id: 'aaaaaaaa-1111-4222-8333-444444444444', cwd: repo }
  const patch = '*** Begin Patch\n*** Add File: new.ts\n+b\n*** End Patch\n'
  const tool_input = { file_path: `${repo}/new.ts`, command: patch }
  const tool_name = kind === 'claude' ? 'Write' : 'apply_patch'
  await agent.hook(kind, 'pre-tool-use', { ...said, tool_name, tool_input })
  expect(await place.ok(['reserve', 'list'])).toMatchObject({ items: [{ path: 'new.ts' }] })
  expect(await agent.hook(kind, event, { ...said, ...more })).toMatchObject({ code: 0 })
  expect(await place.ok(['reserve', 'list'])).toMatchObject({ items: [] })
})
