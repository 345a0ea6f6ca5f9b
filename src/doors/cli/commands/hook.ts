import type { Command } from 'commander'
import { AGENTS } from '../../../agents/all.ts'
import { type AgentKind, KINDS } from '../../../agents/kinds.ts'

const MEANT = ['before', 'alive', 'stop'] as const

/** Of each kind of event the first, as the agent spells it. */
function eventsOf(kind: AgentKind): string[] {
  const events = Object.entries(AGENTS[kind].events)
  return MEANT.flatMap((wanted) => events.find(([, meant]) => meant === wanted)?.[0] ?? [])
}

const EXAMPLES = `
Agents and git run this before and after what they do; \`leasehold init\` writes it into their
settings. It reads what the agent says on standard input and answers as the agent's protocol wants.

${KINDS.map((kind) => `  leasehold hook ${kind} ${eventsOf(kind).join(' | ')} | …`).join('\n')}
  leasehold hook git pre-commit | pre-push

An edit of a file that another agent has reserved is refused, with who has it and until when. A
free file is reserved for the agent that edits it, until the agent's turn or its process ends.

Settings are in config.json: hooks.mode (auto, strict, warn, off), hooks.ttl_seconds and
hooks.unreachable (open, closed). LEASEHOLD_HOOKS=off|auto|strict|warn wins over the mode.
LEASEHOLD_BYPASS="why" lets a refused edit, commit or push past, and puts it on record.
More: docs/hooks.md`

/** `leasehold hook`: here only what it says about itself. See bin/leasehold for the way it runs. */
export function addHook(root: Command): void {
  root
    .command('hook')
    .argument('<agent>', `${KINDS.join(', ')} or git`)
    .argument('<event>', 'as that agent calls it: pre-tool-use, PreToolUse, preToolUse')
    .argument('[more...]', 'more arguments that the agent passes')
    .description('Answer an agent or git that asks before an edit, a commit or a push.')
    .addHelpText('after', EXAMPLES)
    .action(async () => {
      await import('../../../hooks/entry.ts')
    })
}
