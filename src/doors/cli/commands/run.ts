import type { Command } from 'commander'
import type { Enter } from './operations.ts'
import type { RunOptions } from './running.ts'
import { io } from '../../io.ts'

const RUN_TTL = '1m'

export function addRun(root: Command, enter: Enter): void {
  root
    .command('run')
    .description('Hold a lock while a command runs, and release it when the command ends.')
    .argument('<command...>', 'the command and its arguments, behind --')
    .option('--task <id>', 'hold the lock of this task; its status is left alone')
    .option('--lock <name>', 'hold this lock')
    .option('--claim', 'with --task: claim it, and settle it by the exit code (0: done)')
    .option('--ttl <duration>', 'how long the lease lasts if this process is lost', RUN_TTL)
    .option('--wait <duration>', 'wait this long if the lock is held')
    .addHelpText('after', HELP)
    .action(async (argv: string[], options: RunOptions, self: Command) => {
      // Starting processes loads much that other commands do without.
      const { run } = await import('./running.ts')
      io().exitCode = await run(enter(self.optsWithGlobals()), argv, options)
    })
}

const HELP = `
The command finds its lock in LEASEHOLD_LOCK and its fence in LEASEHOLD_FENCE, so that what it does
with leasehold counts as the holder's. The command never outlives the lease: if the lease is lost,
the command is stopped and run exits with 5; otherwise run exits with the command's own code.

Examples:
  leasehold run --lock build -- make -j4
  leasehold run --task 42 --wait 30s -- ./agent.sh
  leasehold run --task 42 --claim -- npm test`
