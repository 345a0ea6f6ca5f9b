import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { KINDS } from '../../src/agents/kinds.ts'
import { sandbox } from '../support/processes.ts'
import { Checkout } from './checkouts.ts'

const ALL = ['--yes', '--client', KINDS.join(',')]

async function done(checkout: Checkout, ...args: string[]): Promise<void> {
  expect(await checkout.init(args), args.join(' ')).toMatchObject({ code: 0, err: '' })
}

describe('leasehold init refuses', () => {
  test('what it cannot read, before anything is written', async () => {
    const repo = new Checkout(sandbox())
    repo.write('.claude/settings.json', '{\n  "hooks": {,}\n}\n')
    const before = repo.snapshot()
    const { code, error } = await repo.init(['--yes', '--json'])
    expect(code).toBe(2)
    expect(error.message).toContain('.claude/settings.json:2:13: broken JSON')
    repo.write('.claude/settings.json', '{"hooks": {"Stop": "mine"}}')
    expect((await repo.init(['--yes', '--json'])).error.message).toContain(
      'hooks.Stop is not a list',
    )
    repo.write('.claude/settings.json', '{\n  "hooks": {,}\n}\n')
    expect(repo.snapshot()).toEqual(before)
  })

  test('links that lead out of the checkout; inside it they are followed', async () => {
    const repo = new Checkout(sandbox())
    mkdirSync(repo.place.path('elsewhere'))
    symlinkSync('../elsewhere', join(repo.root, '.claude'))
    const before = repo.snapshot()
    expect(await repo.init(['--yes', '--json'])).toMatchObject({ code: 4, out: '' })
    expect(repo.snapshot()).toEqual(before)
    rmSync(join(repo.root, '.claude'))
    repo.write('AGENTS.md', '# Ours\n')
    symlinkSync('AGENTS.md', join(repo.root, 'CLAUDE.md'))
    await done(repo, '--yes')
    expect(repo.read('CLAUDE.md')).toMatch(/^# Ours\n\n<!-- leasehold:begin -->\n## Working/)
    expect(repo.read('CLAUDE.md')).not.toContain('@AGENTS.md')
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toMatchObject({ 'AGENTS.md': '644 # Ours\n', 'CLAUDE.md': /^link/ })
  })

  test('a state that git tracks, a home, a folder of git, and one that is read-only', async () => {
    const repo = new Checkout(sandbox())
    repo.write('.leasehold/notes', 'x')
    repo.git('add', '-f', '.leasehold')
    expect(await repo.init(['--yes', '--json'])).toMatchObject({ code: 4 })
    repo.git('rm', '-rq', '--cached', '.leasehold')
    rmSync(join(repo.root, '.leasehold'), { recursive: true })
    const home = await repo.init(['--yes', '--json'], { env: { HOME: repo.root } })
    expect(home).toMatchObject({ code: 2 })
    const inGit = await repo.init(['--yes', '--json'], { cwd: join(repo.root, '.git') })
    expect(inGit).toMatchObject({ code: 2 })
    expect(await repo.init(['--yes', '--client', 'hal'])).toMatchObject({ code: 2 })
    chmodSync(repo.place.folder, 0o755)
    chmodSync(repo.root, 0o555)
    const plain = { uid: 65_534, env: { HOME: '/nonexistent' } }
    const { error } = await repo.init(['--yes', '--json'], plain)
    expect(error).toMatchObject({ code: 'forbidden' })
    expect(Object.keys(repo.snapshot())).toEqual(['hooks/'])
  })
})

test('undo takes out our part only of what others have changed since', async () => {
  const repo = new Checkout(sandbox())
  repo.write('AGENTS.md', '# Ours\r\n')
  await done(repo, ...ALL)
  repo.write('AGENTS.md', `${repo.read('AGENTS.md')}\r\n## More\r\n`)
  const settings = parse(repo.read('.claude/settings.json'))
  settings.hooks.Stop[0].hooks.unshift({ type: 'command', command: 'mine' })
  repo.write('.claude/settings.json', JSON.stringify(settings, null, 2))
  repo.write('.codex/config.toml', `model = "x"\n${repo.read('.codex/config.toml')}`)
  repo.write('.git/hooks/pre-commit', `${repo.read('.git/hooks/pre-commit')}exit 0\n`, 0o755)
  repo.write('.leasehold/leasehold.db', 'a store', 0o600)
  const { out, code } = await repo.init(['--undo', '--yes'])
  expect(code).toBe(0)
  expect(out).toMatch(/AGENTS\.md +take out +changed since: only our part goes/)
  expect(out).toContain('.leasehold stays')
  expect(repo.read('AGENTS.md')).toBe('# Ours\r\n\r\n## More\r\n')
  expect(parse(repo.read('.claude/settings.json'))).toEqual({
    hooks: { Stop: [{ hooks: [{ type: 'command', command: 'mine' }] }] },
  })
  expect(repo.read('.codex/config.toml')).toBe('model = "x"\n')
  expect(repo.read('.git/hooks/pre-commit')).toBe('#!/bin/sh\nexit 0\n')
  expect(repo.git('status', '--porcelain')).not.toContain('.leasehold')
  expect(readFileSync(join(repo.root, '.leasehold/leasehold.db'), 'utf8')).toBe('a store')
})
