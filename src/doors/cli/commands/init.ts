import type { Command } from 'commander'
import type { InitOptions } from '../init/main.ts'

/** `leasehold init`: what it needs is loaded when it is asked for. */
export function addInit(root: Command): void {
  root
    .command('init')
    .description('Set this repository up for its agents: hooks, tools, rules. Can be undone.')
    .option('--client <name,…>', 'the programs to set up (default: those that are found)')
    .option('--yes', 'write without asking')
    .option('--dry-run', 'show what would be written, and write nothing')
    .option('--undo', 'undo it: every file as it was, byte for byte')
    .option('--check', 'for CI: exit 0 if all is set up and current, 5 if not')
    .addHelpText('after', HELP)
    .action(async (_, self: Command) => {
      const { init } = await import('../init/main.ts')
      await init(self.optsWithGlobals<InitOptions>())
    })
}

const HELP = `
It finds the agents that are used here (Claude Code, Codex, Cursor, Gemini CLI, opencode, GitHub
Copilot; or name them with --client), the git checkout and its hooks (husky and core.hooksPath
included), shows every file it would write, and asks once. Files that exist are merged: comments,
order and other people's hooks stay. Running it again changes nothing. On a machine without
leasehold, the hooks do nothing.

Examples:
  leasehold init                                  look, ask, write
  leasehold init --client claude,codex --yes
  leasehold init --check                          in CI, where git hooks are not checked
  leasehold init --undo`
