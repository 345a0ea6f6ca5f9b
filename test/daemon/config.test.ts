import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { RETENTION } from '../../src/core/retention.ts'
import { readConfig } from '../../src/daemon/config/config.ts'
import { expectRefusal } from '../support/helpers.ts'
import { fileOf, stateFolder } from './config_file.ts'

/** What is approved is another test's matter: here everything counts as it is written. */
const configOf = (folder: string, env: NodeJS.ProcessEnv) =>
  readConfig(folder, { LEASEHOLD_TRUST_CONFIG: 'yes', ...env })

const read = (said?: unknown, env: NodeJS.ProcessEnv = {}) => configOf(stateFolder(said), env)

/** Expects the file to be refused, and returns what is wrong with it. */
async function refused(said: unknown, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const folder = stateFolder(said)
  const asked = Promise.resolve().then(() => configOf(folder, env))
  const { message, next, details } = await expectRefusal(asked, 'invalid')
  const problems = details['problems'] as string[]
  expect(message).toContain(fileOf(folder))
  for (const each of problems) expect(message).toContain(each)
  expect(next).toContain('docs/config.md')
  return problems
}

const RULES = {
  lock_expired: true,
  agent_lost: true,
  deadlock: true,
  wait_seconds: 300,
  queue_age_seconds: 3600,
}
const BOUNDS = { store_trouble_seconds: 10, recover_seconds: 300 }
const ALERTS = { webhook: null, command: null, rules: { ...RULES, ...BOUNDS } }

describe('config.json', () => {
  test('may be missing or empty: everything has a default', () => {
    for (const said of [undefined, {}, '\uFEFF{ }\n', { slots: {}, projects: {}, runs: {} }]) {
      const { agents, ...rest } = read(said)
      expect(rest).toEqual({
        busy_timeout_ms: 5000,
        waiting: [],
        retention: RETENTION,
        slots: { max: 4 },
        per_user_serialization: {},
        projects: {},
        landing: {},
        users: {},
        groups: {},
        pool: {},
        hooks: { mode: 'auto', ttl_seconds: 900, discard: 'save' },
        reservations: { scope: 'checkout' },
        runs: { ttl_seconds: 60, grace_seconds: 10, log_bytes_max: 10_485_760 },
        memory: {
          strategies: {},
          embeddings: { provider: 'local' },
        },
        alerts: ALERTS,
        peers: {},
        resources: {},
      })
      expect(Object.keys(agents)).toEqual([
        ...['claude', 'codex', 'gemini', 'opencode', 'copilot', 'shell'],
      ])
    }
  })

  test('says where other machines reach this one, by an address that leads here', () => {
    const listen = (said: string) => read({ peers: { listen: said } }).peers.listen
    expect(listen('10.8.0.1:4750')).toEqual({ host: '10.8.0.1', port: 4750 })
    expect(listen('[fd00::1]:4750')).toEqual({ host: 'fd00::1', port: 4750 })
    for (const wrong of ['4750', 'host', 'host:99999', '0.0.0.0:4750', '[::]:4750', 'a b:1']) {
      expect(() => listen(wrong)).toThrow('peers.listen must')
    }
  })

  test('may say one thing of a section and leave the rest', () => {
    const config = read({
      slots: { max: 0 },
      per_user_serialization: { enabled: false },
      projects: { web: { limit: 2 } },
      users: { ada: { weight: 2.5 }, 'bob@home': { limit: 3 } },
      groups: { release: { limit: 1 }, night: {} },
      pool: { limit: 10 },
      runs: { grace_seconds: 0 },
    })
    expect(config).toMatchObject({
      slots: { max: 0 },
      per_user_serialization: { enabled: false },
      projects: { web: { limit: 2, agent: 'claude' } },
      users: { ada: { weight: 2.5 }, 'bob@home': { limit: 3 } },
      groups: { release: { limit: 1 }, night: {} },
      pool: { limit: 10 },
      runs: { ttl_seconds: 60, grace_seconds: 0 },
    })
  })

  test('a key that does not exist is refused, with the nearest one that does', async () => {
    expect(await refused({ slot: { max: 2 } })).toEqual(['slot: no such key; did you mean slots?'])
    expect(await refused({ projects: { web: { pth: 'x' } } })).toEqual([
      'projects.web.pth: no such key; did you mean path?',
    ])
    expect(await refused({ agents: { claude: { time_limit: 5 } } })).toEqual([
      'agents.claude.time_limit: no such key; did you mean time_limit_seconds?',
    ])
    expect(await refused({ users: { 'a.b': { Weight: 5 } } })).toEqual([
      'users."a.b".Weight: no such key; did you mean weight?',
    ])
    expect(await refused({ pool: { everything: 5 } })).toEqual([
      'pool.everything: no such key; there are limit',
    ])
    expect(await refused('{"users":{"__proto__":{"weight":2}}}')).toEqual([
      '__proto__: no such key',
    ])
  })

  test('several problems are told together, each with its place', async () => {
    const problems = await refused({
      slot: {},
      slots: { max: 1001 },
      per_user_serialization: { enabled: 'yes', lock_timeout_seconds: 0 },
      projects: { web: { agent: 'cluade', limit: -1 }, app: { path: '' }, old: { path: '~bob/x' } },
      agents: { mine: { prompt: 'stdin' }, two: { command: 'run it' }, three: { command: [''] } },
      users: { ada: { weight: 0 }, bob: { weight: 1001 }, eve: [] },
      groups: 5,
      pool: { limit: 1.5 },
      runs: { ttl_seconds: 0.5, log_bytes_max: 1 },
    })
    expect(problems.toSorted()).toEqual([
      'agents.mine.command is missing',
      'agents.three.command must name a program',
      'agents.two.command must be a list: the program, then its arguments',
      'groups must be an object',
      'per_user_serialization.enabled must be true or false',
      'per_user_serialization.lock_timeout_seconds must be at least 1',
      'pool.limit must be a whole number',
      'projects.app.path must not be empty',
      'projects.old.path must be a full path: only ~/ is understood',
      'projects.web.agent: no agent "cluade"; did you mean claude?',
      'projects.web.limit must be at least 0',
      'runs.log_bytes_max must be at least 1024',
      'runs.ttl_seconds must be at least 1',
      'slot: no such key; did you mean slots?',
      'slots.max must be at most 1000',
      'users.ada.weight must be at least 0.001',
      'users.bob.weight must be at most 1000',
      'users.eve must be an object',
    ])
  })

  test('that is no JSON is refused with line and column', async () => {
    const samples = {
      '': 'line 1, column 1: the file ends too soon',
      '{\n  "slots": {\n': 'line 3, column 1: the file ends too soon',
      '{\n  "slots": }': 'line 2, column 12: found "}"',
      '{\r\n  "slots": {},\r\n}': 'line 3, column 1: found "}"',
      '{ // why\n}': 'line 1, column 3: found "/"',
      "{'slots': {}}": `line 1, column 2: found "'"`,
      '{"pool": {"limit": 01}}': 'line 1, column 21: found "1"',
      '{"pool": "two\nlines"}': String.raw`line 1, column 10: found "\""`,
      '{} {}': 'line 1, column 4: found "{"',
      '[[1, 2], [3 4]]': 'line 1, column 13: found "4"',
    }
    for (const [text, place] of Object.entries(samples)) {
      expect(await refused(text)).toEqual([`not JSON at ${place}`])
    }
    expect(await refused('['.repeat(100_000))).toHaveLength(1)
  })

  test('that is JSON but no object is refused', async () => {
    for (const said of ['[]', 'null', '7']) {
      expect(await refused(said)).toEqual(['the file must be an object'])
    }
  })

  test('that cannot be read is refused rather than taken for a missing one', async () => {
    const folder = stateFolder()
    mkdirSync(fileOf(folder))
    const asked = Promise.resolve().then(() => configOf(folder, {}))
    const { message } = await expectRefusal(asked, 'invalid')
    expect(message).toBe(`${fileOf(folder)}: cannot be read (EISDIR)`)
  })

  test('a name that every object has finds nothing in it', () => {
    const { projects, agents, users, groups } = read({ users: { constructor: { weight: 2 } } })
    for (const table of [projects, agents, groups]) expect(table['constructor']).toBeUndefined()
    expect(users['constructor']).toEqual({ weight: 2 })
    expect(users['toString']).toBeUndefined()
  })
})

describe('LEASEHOLD_SLOTS_MAX', () => {
  test('wins over the file, and an empty one says nothing', () => {
    const said = { slots: { max: 7 } }
    expect(read(said, { LEASEHOLD_SLOTS_MAX: '0' }).slots.max).toBe(0)
    expect(read(said, { LEASEHOLD_SLOTS_MAX: '1000' }).slots.max).toBe(1000)
    expect(read(said, { LEASEHOLD_SLOTS_MAX: '' }).slots.max).toBe(7)
    expect(read(said).slots.max).toBe(7)
  })

  test('is refused when it is no such number, beside what is wrong with the file', async () => {
    for (const value of ['-1', '1001', '2.5', 'many', ' 4', '1e2', '0x10']) {
      const problems = await refused({ pol: {} }, { LEASEHOLD_SLOTS_MAX: value })
      expect(problems).toEqual([
        'pol: no such key; did you mean pool?',
        'the environment variable LEASEHOLD_SLOTS_MAX must be a whole number from 0 to 1000',
      ])
    }
  })
})

describe('the path of a project', () => {
  const pathOf = (path: string | undefined, env: NodeJS.ProcessEnv = {}) => {
    const folder = stateFolder({ projects: { web: path === undefined ? {} : { path } } })
    return { path: configOf(folder, env).projects['web']!.path, base: dirname(folder) }
  }

  test('is relative to the folder that has the state folder, which is also its default', () => {
    for (const [said, meant] of [
      ['web', 'web'],
      ['./a/../b', 'b'],
      ['.', ''],
      [undefined, ''],
    ]) {
      const { path, base } = pathOf(said)
      expect(path).toBe(join(base, meant!))
    }
    const { path, base } = pathOf('../beside')
    expect(path).toBe(join(dirname(base), 'beside'))
  })

  test('may be absolute, or begin with the home folder', () => {
    expect(pathOf('/srv/web/').path).toBe('/srv/web')
    expect(pathOf('~/web', { HOME: '/home/$&' }).path).toBe('/home/$&/web')
    expect(pathOf('~', { HOME: '/home/ada' }).path).toBe('/home/ada')
    expect(pathOf('~/web').path).toBe(join(homedir(), 'web'))
  })
})

describe('agents', () => {
  test('some are there without an entry, each with its prompt on standard input', () => {
    const { claude, codex, shell } = read().agents
    expect(claude!.command.slice(0, 2)).toEqual(['claude', '-p'])
    expect(claude!.command).toContain('acceptEdits')
    expect(claude!.env).toMatchObject({ ANTHROPIC_API_KEY: true, CLAUDE_CODE_OAUTH_TOKEN: true })
    // Ours, or the run could not finish its task; but not all of leasehold, which can run anything.
    expect(claude!.command.at(-1)).toMatch(/^mcp__leasehold,Bash\(leasehold task:\*\),/)
    expect(claude!.command.at(-1)).not.toMatch(/leasehold (?:run|\*|:)/)
    expect(codex!.command).toEqual(['codex', 'exec', '--sandbox', 'workspace-write', '-'])
    expect(codex!.env).toMatchObject({ OPENAI_API_KEY: true, CODEX_HOME: true })
    expect(shell).toMatchObject({ command: ['/bin/sh', '-s'], env: {} })
    for (const { prompt } of [claude!, codex!, shell!]) expect(prompt).toBe('stdin')
  })

  test('an entry with the name of a preset changes only what it states', () => {
    const preset = read().agents['codex']!
    const { agents } = read({ agents: { codex: { time_limit_seconds: 900, env: ['MODE'] } } })
    expect(agents['codex']).toEqual({ ...preset, time_limit_seconds: 900, env: { MODE: true } })
    expect(read().agents['codex']).toEqual(preset)
  })

  test('another entry needs a command, and has defaults for the rest', () => {
    const { agents } = read({ agents: { mine: { command: ['./agent', '', 'two words'] } } })
    expect(agents['mine']).toEqual({
      command: ['./agent', '', 'two words'],
      brief: false,
      commit: false,
      prompt: 'stdin',
      env: {},
      time_limit_seconds: null,
      silence_seconds: null,
    })
  })

  test('env is a list of names to pass through, or says a value', async () => {
    const entry = (env: unknown) => ({ agents: { claude: { env } } })
    expect(read(entry(['A', 'B_2'])).agents['claude']!.env).toEqual({ A: true, B_2: true })
    const env = { A: true, B: 'text', C: '' }
    expect(read(entry(env)).agents['claude']!.env).toEqual(env)
    expect(await refused(entry({ LEASEHOLD_TOKEN: true, 'A B': 'x', C: 5, D: false }))).toEqual([
      'agents.claude.env.LEASEHOLD_TOKEN is set by Leasehold itself',
      'agents.claude.env."A B" is no name of a variable',
      'agents.claude.env.C must be text, or true to pass ours through',
      'agents.claude.env.D must be text, or true to pass ours through',
    ])
    expect(await refused(entry(['LEASEHOLD_FENCE']))).toHaveLength(1)
    expect(await refused(entry([5]))).toHaveLength(1)
    expect(await refused(entry('PATH'))).toEqual([
      'agents.claude.env must be a list of names, or an object',
    ])
  })

  test('a command that wants the prompt in a file must be given one', async () => {
    const entry = { command: ['mine', '--in={prompt_file}'] }
    expect(await refused({ agents: { mine: entry } })).toEqual([
      'agents.mine.command: {prompt_file} needs "prompt": "file"',
    ])
    expect(read({ agents: { mine: { ...entry, prompt: 'file' } } }).agents['mine']).toBeDefined()
  })

  test('a NUL in a command is refused: the program would get half of it', async () => {
    expect(await refused({ agents: { mine: { command: ['a\0b'] } } })).toEqual([
      'agents.mine.command.0 must not contain NUL characters',
    ])
  })

  test('a task may ask only for agents that the file mentions', () => {
    const agentsOf = (said: unknown) => read(said).projects['web']!.agents
    expect(agentsOf({ projects: { web: {} } })).toEqual(['claude'])
    expect(agentsOf({ projects: { web: { agent: 'shell' }, app: {} } })).toEqual(['shell'])
    const agents = { mine: { command: ['mine'] }, codex: {} }
    expect(agentsOf({ agents, projects: { web: {} } })).toEqual(['mine', 'codex', 'claude'])
    expect(agentsOf({ agents, projects: { web: { agent: 'mine' } } })).toEqual(['mine', 'codex'])
  })
})
