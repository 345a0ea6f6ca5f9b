import { describe, expect, test } from 'vitest'
import { until } from '../support/processes.ts'
import { Claude, expectDenied, expectSilent, type Repo, repository } from './agents.ts'

interface Listed {
  path: string
  holder: string
  expires_in_seconds: number
}

async function listed({ place }: Repo): Promise<Listed[]> {
  return (await place.ok(['reserve', 'list'])).items as Listed[]
}

describe('an agent that only edits files', () => {
  test('loses what it reserved when its process dies', async () => {
    const { a, b } = repository()
    expectSilent(await a.edit('a.ts'))
    expectDenied(await b.edit('a.ts'))
    await a.die()
    expectSilent(await b.edit('a.ts'))
  })

  test('keeps it by activity, and loses it by silence', async () => {
    const repo = repository({ hooks: { ttl_seconds: 2 } })
    const { a, b } = repo
    expectSilent(await a.edit('a.ts'))
    const [edited] = await listed(repo)
    expect(edited).toMatchObject({ path: 'a.ts', holder: a.id })
    expect(edited!.expires_in_seconds).toBeLessThan(3)
    const first = Date.now()
    await until('its TTL is long over', async () => {
      expectSilent(await a.fire('PostToolUse', { tool_name: 'Read', tool_response: {} }))
      return Date.now() - first > 3_000
    })
    expectDenied(await b.edit('a.ts'))
    await until('its silence is longer than the TTL', async () => (await listed(repo)).length === 0)
    expectSilent(await b.edit('a.ts'))
  })

  test('keeps it through a command of ten minutes', async () => {
    const repo = repository({ hooks: { ttl_seconds: 2 } })
    const { a } = repo
    expectSilent(await a.edit('a.ts'))
    expectSilent(await a.before('Bash', { command: 'make all', timeout: 600_000 }))
    expect((await listed(repo))[0]!.expires_in_seconds).toBeGreaterThan(600)
    // What is reserved after it is as short-lived as before.
    expectSilent(await a.edit('b.ts'))
    const [, later] = await listed(repo)
    expect(later).toMatchObject({ path: 'b.ts' })
    expect(later!.expires_in_seconds).toBeLessThan(3)
  })

  test('a subagent at work keeps its waiting parent alive', async () => {
    const repo = repository({ hooks: { ttl_seconds: 2 } })
    const { a, b } = repo
    expectSilent(await a.edit('a.ts'))
    const until_at = Date.now() + 2_500
    await until('the TTL is over', async () => {
      const sign = { tool_name: 'Read', tool_response: {}, ...Claude.sub('agent-one') }
      expectSilent(await a.fire('PostToolUse', sign))
      return Date.now() > until_at
    })
    expectDenied(await b.edit('a.ts'))
  })
})
