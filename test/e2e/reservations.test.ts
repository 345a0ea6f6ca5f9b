import { execFileSync } from 'node:child_process'
import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sandbox } from '../support/inside.ts'
import type { Sandbox } from '../support/processes.ts'

function repository(place: Sandbox): string {
  const repo = join(realpathSync(place.folder), 'repo')
  mkdirSync(join(repo, 'src', 'core'), { recursive: true })
  const git = (...args: string[]) => {
    const who = ['-c', 'user.name=t', '-c', 'user.email=t@t']
    execFileSync('git', [...who, ...args], { cwd: repo, stdio: 'pipe' })
  }
  git('init', '-q')
  git('commit', '-qm', 'begin', '--allow-empty')
  git('worktree', 'add', '-q', join(realpathSync(place.folder), 'tree'))
  return repo
}

describe('leasehold reserve', () => {
  test('keeps agents apart, whatever folder each is in, and warns across worktrees', async () => {
    const place = sandbox()
    const repo = repository(place)
    const ada = { cwd: repo, env: { LEASEHOLD_AGENT: 'ada' } }
    const bob = { cwd: join(repo, 'src', 'core'), env: { LEASEHOLD_AGENT: 'bob' } }
    const { items } = await place.ok(['reserve', 'add', 'src', '--reason', 'grammar'], ada)
    expect(items).toMatchObject([
      { path: 'src/**', holder: 'ada', checkout: repo, shared: false, reason: 'grammar' },
    ])
    expect(items[0].lock_id).toBe(`path:${repo}:src/**#${items[0].fence}`)
    const refusal = await place.refused(['reserve', 'add', 'lock.ts', '../../x'], 'held', 5, bob)
    expect(refusal.message).toContain('src/core/lock.ts overlaps src/**, reserved by ada since')
    const looked = await place.cli(['--json', 'reserve', 'check', 'lock.ts', '../../x'], bob)
    expect(looked).toMatchObject({ code: 5, err: '' })
    expect(looked.json.items).toMatchObject([
      { path: 'src/core/lock.ts', state: 'held', holder: 'ada', reason: 'grammar' },
      { path: 'x', state: 'free' },
    ])
    expect((await place.ok(['reserve', 'check', 'src'], ada)).items[0].state).toBe('mine')
    const beside = { cwd: place.path('tree'), env: bob.env }
    const { warnings } = await place.ok(['reserve', 'add', 'src/a'], beside)
    expect(warnings[0]).toContain(`in another checkout of this repository: ${repo}`)
    await place.ok(['reserve', 'release'], ada)
    await place.ok(['reserve', 'add', 'lock.ts', '../../x'], bob)
    const all = await place.cli(['reserve', 'list'], ada)
    expect(all.out).toMatch(/^PATHS +HOLDER/)
    expect(all.out.split('\n')).toHaveLength(5)
  })

  test('frees what a process had the moment it dies', async () => {
    const place = sandbox()
    const cwd = repository(place)
    const sleeper = place.start(['60'], { program: ['sleep'] })
    const add = ['reserve', 'add', 'src/**', '--ttl', '1h']
    await place.ok([...add, '--agent', 'ada', '--pid', String(sleeper.pid)], { cwd })
    await place.refused([...add, '--agent', 'bob'], 'held', 5, { cwd })
    sleeper.kill('SIGKILL')
    await sleeper.ended
    expect((await place.ok([...add, '--agent', 'bob'], { cwd })).items[0].holder).toBe('bob')
  })

  test('takes nothing for one terminal that another of the same login has', async () => {
    const place = sandbox()
    const cwd = repository(place)
    await place.ok(['reserve', 'add', 'src/**'], { cwd })
    const again = await place.refused(['reserve', 'add', 'src/a'], 'held', 5, { cwd })
    expect(again.details.by_you).toBe(true)
    await place.refused(['reserve', 'add', '../x'], 'invalid', 2, { cwd })
    await place.refused(['lock', 'acquire', 'path:x'], 'invalid', 2, { cwd })
    await place.ok(['reserve', 'release', 'src/**'], { cwd })
    await place.refused(['reserve', 'release', 'src/**'], 'lease_expired', 5, { cwd })
  })
})
