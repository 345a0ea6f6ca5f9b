import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sandbox } from '../support/processes.ts'
import { Checkout } from './checkouts.ts'

describe('leasehold init and the agents that it finds', () => {
  test('names an agent that asks nobody before an edit', async () => {
    const repo = new Checkout(sandbox())
    writeFileSync(join(repo.root, '.goosehints'), '')
    const said = await repo.init(['--dry-run', '--client', 'claude'])
    expect(said.out).toContain('Not guarded: Goose (.goosehints).')
  })

  test('names no command in Gemini CLI’s settings: it would run no other', async () => {
    const repo = new Checkout(sandbox())
    const before = { tools: { allowed: ['run_shell_command(npm test)'] } }
    repo.write('.gemini/settings.json', JSON.stringify(before))
    await repo.init(['--yes', '--client', 'gemini'])
    expect(JSON.parse(repo.read('.gemini/settings.json')).tools).toEqual(before.tools)
    await repo.init(['--undo', '--yes'])
    expect(JSON.parse(repo.read('.gemini/settings.json'))).toEqual(before)
  })

  test('takes out what an older init wrote for agents that are set up no more', async () => {
    const repo = new Checkout(sandbox())
    const command = (agent: string) => `exec leasehold hook ${agent} PreToolUse`
    const server = { leasehold: { command: 'leasehold', args: ['mcp'] } }
    const theirs = { mcpServers: { docs: { command: 'docs' } } }
    const both = { mcpServers: { ...theirs.mcpServers, ...server } }
    repo.write(
      '.windsurf/hooks.json',
      JSON.stringify({ hooks: { pre: [{ command: command('windsurf') }] } }),
    )
    repo.write('.clinerules/hooks/PreToolUse', `#!/bin/sh\n${command('cline')}\n`)
    repo.write('.clinerules/hooks/PostToolUse', '#!/bin/sh\necho {}\n')
    repo.write(
      '.kiro/hooks/leasehold.json',
      JSON.stringify({ hooks: [{ command: command('kiro') }] }),
    )
    repo.write('.kiro/settings/mcp.json', JSON.stringify(both))
    expect((await repo.init(['--dry-run'])).out).toContain(
      'Not guarded: Cline (.clinerules), Kiro (.kiro), Windsurf (.windsurf).',
    )
    await repo.init(['--undo', '--yes'])
    expect(JSON.parse(repo.read('.kiro/settings/mcp.json'))).toEqual(theirs)
    const left = Object.keys(repo.snapshot()).filter((path) =>
      /^\.(?:wind|cline|kiro).*[^/]$/.test(path),
    )
    expect(left).toEqual(['.clinerules/hooks/PostToolUse', '.kiro/settings/mcp.json'])
  })

  test('names an agent that came after the repository was set up', async () => {
    const repo = new Checkout(sandbox())
    await repo.init(['--yes', '--client', 'claude'])
    mkdirSync(join(repo.root, '.gemini'))
    const said = await repo.init(['--dry-run'])
    expect(said.out).toContain('Gemini CLI was found (.gemini) and is not set up')
  })

  test.each([
    ['claude', '.claude/settings.json', '{ "enabledPlugins": { "leasehold@leasehold": true } }'],
    ['codex', '.codex/config.toml', '[plugins."leasehold@leasehold"]\nenabled = true\n'],
    ['gemini', '.gemini/extensions/leasehold/gemini-extension.json', '{}'],
  ])('does not write hooks for %s where a plugin has them', async (agent, path, text) => {
    const repo = new Checkout(sandbox())
    const file = join(repo.place.home, path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
    const { json } = await repo.init(['--yes', '--json', '--client', agent])
    expect(json.notes.join('\n')).toContain('has Leasehold as a plugin')
    const paths = json.changes.map(({ path: each }: { path: string }) => each)
    expect(paths.filter((each: string) => each.startsWith(`.${agent}`))).toEqual([])
    expect(paths).toContain('AGENTS.md')
  })

  test('writes hooks where the plugin is switched off', async () => {
    const repo = new Checkout(sandbox())
    const folder = join(repo.place.home, '.claude')
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, 'settings.json'),
      '{ "enabledPlugins": { "leasehold@leasehold": false } }',
    )
    const { json } = await repo.init(['--yes', '--json', '--client', 'claude'])
    expect(JSON.stringify(json.changes)).toContain('.claude/settings.json')
  })
})
