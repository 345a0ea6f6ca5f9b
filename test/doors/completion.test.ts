import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { operations } from '../../src/operations/registry.ts'
import { CLI } from '../support/processes.ts'

// Named here: in place, knip takes them for programs of packages.
const [ZSH, FISH] = ['zsh', 'fish'] as const

const print = (...args: string[]) =>
  spawnSync(process.execPath, [CLI, ...args], { encoding: 'utf8' })

/** What a shell offers for the last of these words. */
const BASH = `eval "$SCRIPT"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leasehold; printf '%s\\n' "\${COMPREPLY[@]}"`

describe('completion', () => {
  const script = print('completion', 'bash').stdout
  const offered = (...words: string[]) => {
    const args = ['--norc', '-c', BASH, 'bash', 'leasehold', ...words]
    const env = { PATH: process.env['PATH'], SCRIPT: script }
    const { stdout, stderr } = spawnSync('bash', args, { encoding: 'utf8', env, cwd: '/' })
    expect(stderr).toBe('')
    return stdout.trim().split('\n')
  }

  test('bash completes commands, flags and values from the registry', () => {
    expect(offered('lo')).toEqual(['lock'])
    expect(offered('lock', 'a')).toEqual(['acquire'])
    expect(offered('--json', 'task', 'cl')).toEqual(['claim'])
    expect(offered('lock', 'acquire', 'x', '--p')).toEqual(['--priority', '--pid'])
    expect(offered('runs', 'list', '--status', 'c')).toEqual(['completed', 'cancelled'])
    expect(offered('task', 'status', '1', 'in')).toEqual(['in_progress'])
    expect(offered('token', 'create', '--role', 'v')).toEqual(['viewer'])
    expect(offered('completion', '')).toEqual(['bash', 'zsh', 'fish'])
  })

  test('bash completes files where a value can be anything, and behind --', () => {
    expect(offered('db', 'backup', '/et')).toEqual(['/etc'])
    expect(offered('run', '--lock', 'x', '--', '/et')).toEqual(['/etc'])
  })

  test.each(['zsh', 'fish'])('%s is told of every command', (shell) => {
    const { stdout } = print('completion', shell)
    const paths = operations.flatMap(({ command }) => command?.split(' ', 2).join('/') ?? [])
    expect(paths.filter((path) => !stdout.includes(`/${path}`))).toEqual([])
  })

  // reason: not every machine has these shells; bash is tried above, these when they are here
  test.skipIf(spawnSync(ZSH, ['-c', '']).status !== 0)('zsh can read its script', () => {
    const input = print('completion', 'zsh').stdout
    expect(spawnSync(ZSH, ['-n'], { input, encoding: 'utf8' }).stderr).toBe('')
  })

  // reason: as above
  test.skipIf(spawnSync(FISH, ['-c', '']).status !== 0)('fish completes a command', () => {
    const input = `${print('completion', 'fish').stdout}\ncomplete -C 'leasehold lock a'\n`
    expect(spawnSync(FISH, { input, encoding: 'utf8' }).stdout).toContain('acquire')
  })
})
