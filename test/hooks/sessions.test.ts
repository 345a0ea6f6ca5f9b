import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BIN } from '../support/processes.ts'
import {
  AgentProcess,
  Claude,
  expectDenied,
  expectSilent,
  MCP_HELLO,
  repository,
  SESSIONS,
} from './agents.ts'

const MCP = [
  ...MCP_HELLO,
  {
    id: 2,
    method: 'tools/call',
    params: { name: 'reserve_paths', arguments: { paths: ['b.ts'] } },
  },
]

describe('what an agent starts', () => {
  test('is the same agent: the command line, leasehold mcp and its edits', async () => {
    const { place, a, b } = repository()
    expectSilent(await a.edit('a.ts'))
    const made = JSON.parse((await a.leasehold('--json reserve add src/c.ts')).out)
    expect(made.items).toMatchObject([{ path: 'src/c.ts', holder: a.id }])
    const lines = MCP.map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`).join('')
    // The pipe stays open until the answer is there: its end would end the server.
    const answered = `while ! grep -q '"id":2' answers; do sleep 0.02; done`
    const server = `'${process.execPath}' '${BIN}' mcp`
    const mcp = await a.sh(`{ cat; ${answered}; } | ${server} > answers; cat answers`, lines)
    expect(mcp.out, mcp.err).toContain('Reserved b.ts')
    for (const file of ['b.ts', 'src/c.ts']) {
      expectSilent(await a.edit(file))
      expect(expectDenied(await b.edit(file))).toContain(`reserved by ${a.id}`)
    }
    const { items } = await place.ok(['reserve', 'list'])
    expect(items.map((each: { holder: string }) => each.holder)).toEqual([a.id, a.id, a.id])
    expectSilent(await a.end())
    expect(await place.ok(['reserve', 'list'])).toMatchObject({ items: [] })
    // Nobody is that agent any more.
    const after = JSON.parse((await a.leasehold('--json lock acquire x')).out)
    expect(after.holder).toMatch(/^cli:/)
  })

  test('keeps an id that a runner gave, and an agent inside an agent is nested', async () => {
    const { place, repo } = repository()
    const a = new Claude(place, repo, SESSIONS.a, { LEASEHOLD_AGENT: 'runner-7' })
    expectSilent(await a.edit('a.ts'))
    expectSilent(await a.edit('a.ts', Claude.sub('one')))
    const inner = new Claude(place, repo, SESSIONS.b, { LEASEHOLD_AGENT: 'claude:aaaaaaaa' })
    expectSilent(await inner.edit('b.ts'))
    const { items } = await place.ok(['reserve', 'list'])
    const holders = items.map((each: { holder: string }) => each.holder)
    const nested = 'claude:aaaaaaaa/claude-bbbbbbbb'
    expect(holders.toSorted()).toEqual([nested, 'runner-7', 'runner-7/one'])
  })

  test('leaves one small private file, which goes with the process', async () => {
    const { place, repo, a, b } = repository()
    expectSilent(await a.edit('a.ts'))
    const folder = join(place.state, 'sessions')
    const files = () => readdirSync(folder)
    expect(files()).toHaveLength(1)
    expect(files()[0]).toMatch(new RegExp(`^${a.running.pid}-\\d+\\.json$`))
    expect(statSync(join(folder, files()[0]!)).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    await a.die()
    expectSilent(await b.edit('b.ts'))
    expect(files()).toEqual([expect.stringMatching(`^${b.running.pid}-`)])
    // One process with two conversations: nobody can tell whose command it is.
    const editor = new AgentProcess(place, repo)
    for (const conversation_id of ['conversation-1', 'conversation-2']) {
      const input = { conversation_id, generation_id: 'g', workspace_roots: [repo] }
      await editor.hook('cursor', 'beforeSubmitPrompt', { ...input, prompt: 'Go on' })
    }
    const { out } = await editor.leasehold('--json lock acquire y')
    expect(JSON.parse(out).holder).toMatch(/^cli:/)
  })
})
