import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BIN } from '../support/processes.ts'
import {
  Claude,
  expectDenied,
  expectSilent,
  recorded,
  repository,
  type Said,
  SESSIONS,
} from './agents.ts'

const spoken = (said: Said) =>
  JSON.parse(said.out) as {
    systemMessage?: string
    hookSpecificOutput?: { additionalContext?: string; permissionDecision?: string }
  }

describe('modes', () => {
  test('strict wants a reservation first', async () => {
    const { a } = repository({ hooks: { mode: 'strict' } })
    const no = expectDenied(await a.edit('a.ts'))
    expect(no).toMatch(
      /a\.ts is not reserved by you\. Next: Reserve it first: leasehold reserve add/,
    )
    expect(await a.leasehold('reserve add a.ts')).toMatchObject({ code: 0 })
    expectSilent(await a.edit('a.ts'))
  })

  test('warn only says so, and off says nothing', async () => {
    const { a, b } = repository({ hooks: { mode: 'warn' } })
    expectSilent(await a.edit('a.ts'))
    const said = await b.edit('a.ts')
    expect(said).toMatchObject({ code: 0, err: '' })
    const { hookSpecificOutput } = spoken(said)
    expect(hookSpecificOutput?.additionalContext).toContain(`reserved by ${a.id}`)
    expect(hookSpecificOutput).not.toHaveProperty('permissionDecision')
    b.env = { LEASEHOLD_HOOKS: 'off' }
    expectSilent(await b.edit('a.ts'))
    b.env = { LEASEHOLD_HOOKS: 'auto' }
    expectDenied(await b.edit('a.ts'))
  })

  test('a bypass is a person’s to give, and is put on record', async () => {
    const { place, a, b } = repository()
    expectSilent(await a.edit('a.ts'))
    expectDenied(await b.bash('LEASEHOLD_BYPASS=please rm a.ts'))
    b.env = { LEASEHOLD_BYPASS: 'the site is down' }
    const said = await b.edit('a.ts')
    expect(said.code).toBe(0)
    expect(spoken(said).systemMessage).toMatch(
      /bypassed \(LEASEHOLD_BYPASS: the site is down\); it is on record/,
    )
    expectSilent(await b.edit('b.ts'))
    const bypasses = await recorded(place, 'hook.bypassed')
    const refusal = expect.stringContaining('is reserved by claude:aaaaaaaa') as string
    const data = { paths: ['a.ts'], reason: 'the site is down', refusal, by_person: true }
    expect(bypasses).toMatchObject([{ agent: b.id, data }])
  })
})

test('what is reserved for a whole project counts in each of its checkouts', async () => {
  const { place, repo, a } = repository()
  const config = { projects: { web: { path: repo } } }
  writeFileSync(join(place.state, 'config.json'), JSON.stringify(config), { mode: 0o600 })
  const whole = ['--project', 'web', '--checkout', '']
  await place.ok(['--agent', 'carol', 'reserve', 'add', 'src/**', ...whole])
  expect(expectDenied(await a.edit('src/a.ts'))).toContain('reserved by carol')
  expectDenied(await a.bash('rm src/a.ts'))
  expectSilent(await a.edit('docs/a.md'))
  const check = ['reserve', 'check', 'src/a.ts']
  expect((await place.cli(check, { cwd: repo })).code).toBe(5)
})

describe('what cannot be asked', () => {
  const damaged = (config?: object) => {
    const made = repository(config)
    writeFileSync(
      join(made.place.state, 'leasehold.db'),
      'not a database, by any means'.repeat(99),
      {
        mode: 0o600,
      },
    )
    return made
  }

  test('goes on unguarded by default, and says so', async () => {
    const { a } = damaged()
    const said = await a.edit('a.ts')
    expect(said.code).toBe(0)
    expect(spoken(said).systemMessage).toMatch(/cannot be asked.*unguarded/)
    expect(said.err).toMatch(/cannot be asked.*unguarded.*leasehold doctor/)
    expect((await a.end()).code).toBe(0)
  })

  test.each([{ unreachable: 'closed' }, { mode: 'strict' }])(
    'is refused with %j',
    async (hooks) => {
      const { a } = damaged({ hooks })
      expect(expectDenied(await a.edit('a.ts'))).toMatch(/cannot be asked.*refused.*closed/)
      a.env = { LEASEHOLD_BYPASS: 'mending the store' }
      expect((await a.edit('a.ts')).code).toBe(0)
    },
  )
})

test('a git that never answers holds up no hook, and nothing goes past it in silence', async () => {
  const { repo, a } = repository()
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(repo, '.git/waits')])
  appendFileSync(join(repo, '.git/config'), '[include]\n\tpath = waits\n')
  const began = performance.now()
  const said = await a.bash('git commit -qam all')
  expect(performance.now() - began).toBeLessThan(10_000)
  expect(said.err).toMatch(/git could not be asked/)
})

describe('bad input', () => {
  test('blocks nothing and is told', async () => {
    const { a } = repository()
    for (const text of ['', '{', '[]', 'null', '"x"', '\u0000']) {
      const said = await a.hook('claude', 'pre-tool-use', text)
      expect(said, JSON.stringify(text)).toMatchObject({ code: 0 })
      expect(said.err).toContain('its input is not JSON')
    }
    const odd = { session_id: 5, cwd: null, tool_name: {}, tool_input: [], agent_id: 7 }
    expect((await a.hook('claude', 'pre-tool-use', odd)).code).toBe(0)
    const unknown = await a.hook('claude', 'what-is-this', {})
    expect(unknown).toMatchObject({ code: 0, out: '' })
    const typo = await a.hook('cluade', 'pre-tool-use', {})
    expect(typo).toMatchObject({ code: 1, out: '' })
    expect(typo.err).toContain('gemini, opencode, copilot or git')
  })

  test('is refused where the store out of reach would be', async () => {
    const { a } = repository({ hooks: { unreachable: 'closed' } })
    expectDenied(await a.hook('claude', 'PreToolUse', '{'))
    const endless = "head -c 34000000 /dev/zero | tr '\\0' ' '"
    const long = await a.sh(`${endless} | '${process.execPath}' '${BIN}' hook claude PreToolUse`)
    expect(expectDenied(long)).toContain('too long')
  })

  test('a pipe that nobody closes does not hang the agent', async () => {
    const { place, repo } = repository()
    const running = place.start(['hook', 'claude', 'pre-tool-use'], {
      program: [process.execPath, BIN],
      cwd: repo,
    })
    expect(await running.ended).toMatchObject({ code: 0 })
  })

  test('a wrong setting is told, and the default used', async () => {
    const { a } = repository({ hooks: { mode: 'atuo', ttl_seconds: '5' } })
    const said = await a.edit('a.ts')
    expect(said.code).toBe(0)
    expect(said.err).toMatch(/hooks\.mode is none of auto, strict, warn, off[^]*hooks\.ttl_seconds/)
  })

  test('without a state folder there is nothing to do', async () => {
    const { place, repo, b } = repository()
    rmSync(place.state, { recursive: true })
    expectSilent(await b.edit('a.ts'))
    const other = new Claude(place, repo, SESSIONS.a)
    expectSilent(await other.end())
    expect(existsSync(place.state)).toBe(false)
  })
})
