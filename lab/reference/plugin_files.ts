import { readFileSync } from 'node:fs'
import { AGENTS } from '../../src/agents/all.ts'
import type { AgentKind } from '../../src/agents/kinds.ts'
import { hookEvents } from '../../src/doors/cli/init/agents.ts'
import { serverFor } from '../../src/doors/cli/init/servers.ts'
import { RULES, SKILL } from '../../src/doors/cli/init/teaching.ts'

const { version, description, license } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Record<string, string>

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`
const about = { name: 'leasehold', version, description }

/** The hooks that `init` would write into an agent's settings, as a plugin holds them. */
function hooksOf(agent: AgentKind): string {
  const hooks: Record<string, object[]> = {}
  for (const { event, command, timeout, matcher } of hookEvents(agent, undefined)) {
    const group = { hooks: [{ type: 'command', command, timeout }] }
    hooks[event] = [matcher === undefined ? group : { matcher, ...group }]
  }
  return json({ hooks })
}

const servers = json({ mcpServers: { leasehold: serverFor(false) } })

const command = (says: string, what: string) => `---\ndescription: ${says}\n---\n\n${what}\n`

/**
 * The plugins, file by file, made of what `leasehold init` writes: one folder for Claude Code and
 * Codex, which tell their hooks apart by their manifests, and an extension for Gemini CLI.
 */
export const PLUGIN_FILES: Record<string, string> = {
  '.claude-plugin/marketplace.json': json({
    name: 'leasehold',
    owner: { name: 'Leasehold' },
    plugins: [{ name: 'leasehold', description, source: './plugins/leasehold' }],
  }),
  'plugins/leasehold/.claude-plugin/plugin.json': json({ ...about, license }),
  'plugins/leasehold/.codex-plugin/plugin.json': json({
    ...about,
    license,
    skills: './skills/',
    mcpServers: './.mcp.json',
    hooks: './hooks/codex.json',
  }),
  'plugins/leasehold/hooks/hooks.json': hooksOf('claude'),
  'plugins/leasehold/hooks/codex.json': hooksOf('codex'),
  'plugins/leasehold/.mcp.json': servers,
  'plugins/leasehold/skills/leasehold/SKILL.md': SKILL,
  'plugins/leasehold/commands/who.md': command(
    'Who works on what here, and which files are reserved',
    `Run \`leasehold task list\`, \`leasehold agent list\` and \`leasehold reserve list\`. Say in a
few lines who works on what, which files are reserved, and until when.`,
  ),
  'plugins/leasehold/commands/claim.md': command(
    'Claim the next ready task and begin',
    `Claim the next ready task with \`claim_task\`. If nothing is ready, say so and stop. Else
reserve the files that you will change, do the task, and set it to \`review\`.`,
  ),
  'plugins/gemini/gemini-extension.json': json({
    ...about,
    mcpServers: { leasehold: serverFor(false, AGENTS.gemini.setUp.tools) },
    contextFileName: 'GEMINI.md',
  }),
  'plugins/gemini/GEMINI.md': `${RULES}\n`,
  'plugins/gemini/hooks/hooks.json': hooksOf('gemini'),
}
