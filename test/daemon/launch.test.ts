import { spawnSync } from 'node:child_process'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RefusalCode } from '../../src/core/refusal.ts'
import type { AgentConfig } from '../../src/daemon/config/config.ts'
import { type Launch, planLaunch } from '../../src/daemon/dispatch/launch.ts'
import { expectRefusal } from '../support/helpers.ts'

const PROMPT_PATH = '/state/runs/1f/prompt.md'
const LEASEHOLD = { LEASEHOLD_TASK: '42', LEASEHOLD_FENCE: '7' }

const WAYS = ['stdin', 'file', 'argument'] as const

/** Text that becomes a command, an option or a path wherever somebody forgets that it is data. */
const NASTY = [
  '; touch pwned #',
  '$(touch pwned)',
  '`touch pwned`',
  '${HOME} $HOME ~ * ? [a] {a,b}',
  '| tee pwned & && || > pwned < pwned',
  "it's \"quoted\" \\ and \\\\ 'again'",
  '--output=pwned',
  '--dangerously-skip-permissions',
  '-p',
  '--',
  '-',
  'first line\nsecond line\r\nthird\ttab',
  '{prompt_file}',
  'see {prompt_file} and $& $1 $` $$',
  'LEASEHOLD_TOKEN=stolen',
  '\u001b]0;title\u0007\u202etxt.exe',
  '\ud800 alone',
  '__proto__',
  '',
  ' ',
]
const LONG = 'x'.repeat(1024 * 1024)
const NUL = 'before\0after'

const agentOf = (more: Partial<AgentConfig> = {}): AgentConfig => ({
  command: ['agent', '--quiet'],
  prompt: 'stdin',
  env: {},
  brief: false,
  commit: false,
  time_limit_seconds: null,
  silence_seconds: null,
  ...more,
})

interface Asked extends Partial<AgentConfig> {
  text?: string
  ours?: NodeJS.ProcessEnv
  leasehold?: Record<string, string>
}

function launch({ text = 'Do it', ours = {}, leasehold = LEASEHOLD, ...agent }: Asked): Launch {
  const cwd = '/project'
  const of = { cwd, prompt: text, prompt_path: PROMPT_PATH }
  return planLaunch({ agent: agentOf(agent), ...of, ours, leasehold })
}

const refused = (asked: Asked, code: RefusalCode) =>
  expectRefusal(
    Promise.resolve().then(() => launch(asked)),
    code,
  )

describe('the prompt reaches the agent', () => {
  test('on standard input, whatever it says', () => {
    for (const text of [...NASTY, LONG, NUL]) {
      expect(launch({ text })).toMatchObject({
        argv: ['agent', '--quiet'],
        cwd: '/project',
        stdin: text,
        prompt_file: null,
      })
    }
  })

  test('in a file, whose path stands where the command says', () => {
    const command = ['agent', '{prompt_file}', '--from={prompt_file}', '{prompt}', 'last']
    for (const text of [...NASTY, LONG, NUL]) {
      const { argv, stdin, prompt_file } = launch({ prompt: 'file', command, text })
      expect(argv).toEqual(['agent', PROMPT_PATH, `--from=${PROMPT_PATH}`, '{prompt}', 'last'])
      expect({ stdin, prompt_file }).toEqual({ stdin: null, prompt_file: PROMPT_PATH })
    }
  })

  test('in a file, whose path comes last and behind -- when the command does not say', () => {
    const { argv } = launch({ prompt: 'file' })
    expect(argv).toEqual(['agent', '--quiet', '--', PROMPT_PATH])
  })

  test('a path is put in as it is, even where it looks like a pattern', () => {
    const agent = agentOf({ prompt: 'file', command: ['agent', '<{prompt_file}>'] })
    const prompt_path = "/odd/$&/$'/{prompt_file}"
    const of = { cwd: '/project', prompt: 'Do it', prompt_path, ours: {}, leasehold: {} }
    expect(planLaunch({ agent, ...of }).argv).toEqual(['agent', `<${prompt_path}>`])
  })

  test('as one argument behind --, so that it is never an option', () => {
    for (const text of NASTY) {
      const { argv, stdin, prompt_file } = launch({ prompt: 'argument', text })
      expect(argv).toEqual(['agent', '--quiet', '--', text])
      expect({ stdin, prompt_file }).toEqual({ stdin: null, prompt_file: null })
    }
  })

  test('not as an argument when it has a NUL, which would cut it off', async () => {
    const { next } = await refused({ prompt: 'argument', text: NUL }, 'invalid')
    expect(next).toContain('"prompt": "stdin"')
  })

  test('not as an argument when it has more than 100 KiB, counted in bytes', async () => {
    const longest = 'é'.repeat(50 * 1024)
    expect(launch({ prompt: 'argument', text: longest }).argv.at(-1)).toBe(longest)
    for (const text of [`${longest}.`, LONG]) {
      const { next } = await refused({ prompt: 'argument', text }, 'too_large')
      expect(next).toContain('"prompt": "stdin"')
    }
  })

  test('and the plan leaves the settings as they were', () => {
    for (const prompt of WAYS) {
      const agent = agentOf({ prompt, command: ['agent', 'in:{prompt_file}'] })
      const before = structuredClone(agent)
      const of = { cwd: '/project', prompt: 'Do it', prompt_path: PROMPT_PATH }
      planLaunch({ agent, ...of, ours: {}, leasehold: {} }).argv.push('more')
      expect(agent).toEqual(before)
    }
  })

  test('and a real program gets exactly the text, with no shell in between', () => {
    const print = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))'
    const command = [process.execPath, '-e', print]
    for (const text of NASTY.filter((each) => !each.includes('\ud800'))) {
      const { argv, env } = launch({ prompt: 'argument', command, text })
      const { stdout } = spawnSync(argv[0]!, argv.slice(1), { env, encoding: 'utf8' })
      expect(JSON.parse(stdout)).toEqual([text])
    }
  })
})

describe('whatever the prompt is', () => {
  const anyText = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 2000 }),
    fc.constantFrom(...NASTY),
    fc.tuple(fc.constantFrom(...NASTY), fc.string()).map((parts) => parts.join('')),
  )
  const anyAgent = fc.record({
    prompt: fc.constantFrom(...WAYS),
    command: fc.array(fc.oneof(fc.string(), fc.constant('a={prompt_file}')), { minLength: 1 }),
    env: fc.dictionary(fc.constantFrom('KEY', 'PATH', 'HOME', 'OTHER'), fc.constant(true as const)),
  })
  const ours = { PATH: '/bin', KEY: 'secret', SECRET: 'kept' }

  test('the command before it and the environment are the same', () => {
    fc.assert(
      fc.property(anyAgent, anyText, (agent, text) => {
        fc.pre(agent.prompt !== 'argument' || !text.includes('\0'))
        const [one, other] = [launch({ ...agent, text, ours }), launch({ ...agent, ours })]
        const fixed = agent.prompt === 'argument' ? one.argv.length - 1 : one.argv.length
        expect(one.argv.slice(0, fixed)).toEqual(other.argv.slice(0, fixed))
        expect(one.argv.slice(fixed)).toEqual(agent.prompt === 'argument' ? [text] : [])
        if (agent.prompt === 'argument') expect(one.argv[fixed - 1]).toBe('--')
        expect({ ...one, argv: [], stdin: '' }).toEqual({ ...other, argv: [], stdin: '' })
      }),
    )
  })
})

describe('the environment of an agent', () => {
  const secrets = {
    AWS_SECRET_ACCESS_KEY: 'a',
    GITHUB_TOKEN: 'b',
    SSH_AUTH_SOCK: 'c',
    NODE_OPTIONS: '--require=evil.cjs',
    LD_PRELOAD: 'evil.so',
    COLORTERM: 'truecolor',
    LEASEHOLD_TOKEN: 'admin',
    LEASEHOLD_DIR: '/elsewhere',
    LCX: 'd',
  }
  const plain = {
    ...{ PATH: '/opt/bin:/bin', HOME: '/home/ada', USER: 'ada', LOGNAME: 'ada', SHELL: '/bin/zsh' },
    ...{ LANG: 'de_DE.UTF-8', LANGUAGE: 'de', LC_ALL: 'C', LC_TIME: 'C', TERM: 'xterm' },
    ...{ TMPDIR: '/var/t', TZ: 'UTC', SSL_CERT_FILE: '/a.pem', SSL_CERT_DIR: '/certs' },
    ...{ NODE_EXTRA_CA_CERTS: '/b.pem', HTTP_PROXY: 'p:1', HTTPS_PROXY: 'p:2', NO_PROXY: 'x' },
    ...{ http_proxy: 'p:1', https_proxy: 'p:2', no_proxy: 'x' },
  }

  test('has what every program needs, and nothing else of ours', () => {
    const { env } = launch({ ours: { ...plain, ...secrets } })
    expect(env).toEqual({ ...plain, ...LEASEHOLD })
  })

  test('has what the agent names: values, and variables of ours that are set', () => {
    const named = { GITHUB_TOKEN: true, MODE: 'fast', HOME: '/elsewhere', UNSET: true } as const
    const { env } = launch({ env: named, ours: { ...plain, ...secrets }, leasehold: {} })
    expect(env).toEqual({ ...plain, GITHUB_TOKEN: 'b', MODE: 'fast', HOME: '/elsewhere' })
  })

  test('has our own LEASEHOLD_ variables from this run alone', () => {
    const named = { LEASEHOLD_TOKEN: true, LEASEHOLD_FENCE: '9', LEASEHOLD_DIR: 'x' } as const
    const { env } = launch({ env: named, ours: { ...secrets, LEASEHOLD_FENCE: '8' } })
    expect(env).toEqual({ PATH: '/usr/bin:/bin', ...LEASEHOLD })
  })

  test('has a PATH, even if we have none', () => {
    for (const ours of [{}, { PATH: '' }, { PATH: undefined }]) {
      expect(launch({ ours }).env['PATH']).toBe('/usr/bin:/bin')
      expect(launch({ ours, env: { PATH: true } }).env['PATH']).toBe('/usr/bin:/bin')
      expect(launch({ ours, env: { PATH: '/opt/bin' } }).env['PATH']).toBe('/opt/bin')
    }
  })
})
