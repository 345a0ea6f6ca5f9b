import type { Command } from 'commander'
import type { Enter } from './operations.ts'

/** Commands of the dispatcher: what they need is loaded when they are asked for. */
export function addDispatch(root: Command, runs: Command, enter: Enter): void {
  root
    .command('dispatch')
    .description('Start agents on enqueued tasks, in this terminal, until stopped.')
    .option('--slots <n>', 'how many to run at once (default: slots.max of config.json, else 4)')
    .addHelpText('after', HELP)
    .action(async (options: { slots?: string }, self: Command) => {
      const { dispatchHere } = await import('./dispatching.ts')
      await dispatchHere(enter(self.optsWithGlobals()), options.slots)
    })
  runs
    .command('logs')
    .description('Show the output of a run; with --follow, as it is printed.')
    .argument('<id>', 'The run (42.1), or a task for its newest run (42).')
    .option('-f, --follow', 'keep printing until the run has ended')
    .action(async (id: string, options: { follow?: boolean }, self: Command) => {
      const { showLogs } = await import('./logs.ts')
      await showLogs(enter(self.optsWithGlobals()), id, options.follow ?? false)
    })
}

const HELP = `
A daemon (leasehold up) dispatches by itself. Use this command to run a dispatcher on its own, or to
watch what it does. Projects and their agents are in config.json: see docs/config.md.

Agents that are running when it stops go on; the next dispatcher takes them over.`
