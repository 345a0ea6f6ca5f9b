import type { Command } from 'commander'
import { Refusal } from '../../../core/refusal.ts'
import { VERSION } from '../../../machine/version.ts'
import { isEverTrusted, UNTRUSTED } from '../../../machine/codex_trust.ts'
import { ancestors } from '../../../machine/process.ts'
import { agentProcess } from '../../../hooks/identity.ts'
import { folderOf } from '../../../stores/place.ts'
import { type Enter, knownDamage } from './operations.ts'
import { refuseStranger } from '../family.ts'
import { io } from '../../io.ts'

/** `leasehold mcp`: what an agent's program starts to reach leasehold through a pipe. */
export function addMcp(root: Command, enter: Enter): void {
  root
    .command('mcp')
    .description('Speak MCP on standard input and output, for one agent.')
    .option('--tools <core|all>', 'which tools to offer: those most agents need, or all')
    .action(async ({ tools: asked }: { tools?: string }, self: Command) => {
      const above = new Set([...ancestors()].map(({ name }) => name))
      // It sends every tool with every request, and shares .mcp.json with those that do not.
      const tools = asked ?? (above.has('copilot') ? 'core' : 'all')
      if (tools !== 'core' && tools !== 'all') throw noChoice(tools)
      const context = enter(self.optsWithGlobals())
      const { serveMcp } = await import('../../mcp/main.ts')
      const refuse = (agent: string) => refuseStranger(context.family(), agent)
      const damage = () => knownDamage(context)
      // In a run it is the same as hooks name: what one reserves, the other may write.
      const isRun = context.env['LEASEHOLD_RUN'] !== undefined
      const clientProcess = () => (isRun ? agentProcess() : undefined) ?? null
      const isGuarded = !above.has('codex') || isEverTrusted(io().cwd(), context.env)
      const warning = isGuarded ? '' : UNGUARDED
      const reach = { ...context, refuseStranger: refuse, damage, clientProcess, warning }
      const { watchTurns } = await import('../../../hooks/turns.ts')
      const unwatch = watchTurns(folderOf(context.place), context.env, io().cwd())
      await serveMcp(reach, VERSION, tools).finally(unwatch)
    })
}

/** For an agent of Codex, which no hook has told. */
const UNGUARDED =
  `${UNTRUSTED}: you would write over what others have reserved. Reserve before you edit ` +
  `(reserve_paths), and tell your user: in codex, type /hooks and trust those of leasehold. `

function noChoice(tools: string): Refusal {
  return new Refusal('invalid', `--tools is neither core nor all: ${tools}`, {
    next: 'Say --tools core, or leave it out for all.',
  })
}
