import type { Command } from 'commander'
import type { Enter } from './operations.ts'

export function addTop(root: Command, enter: Enter): void {
  root
    .command('top')
    .description('Live view: running tasks, slots, queues, locks and alerts.')
    .addHelpText('after', HELP)
    .action(async (_, self: Command) => {
      // A screen and its keys: other commands do without.
      const { top } = await import('../top/live.ts')
      await top(enter(self.optsWithGlobals()))
    })
}

const HELP = `
Keys: arrows select, c cancels a task, r force-releases a lock (both ask first), e explains,
f or enter follows the output of a run, ? shows all keys, q quits.

The view changes when something happens, and counts down once a second. Without a terminal it is
printed once; with --json, as data.

Examples:
  leasehold top
  leasehold top | cat
  leasehold --json top | jq '.locks[] | select(.waiters | length > 0)'`
