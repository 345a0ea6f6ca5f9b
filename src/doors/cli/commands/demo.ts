import type { Command } from 'commander'
import type { DemoOptions } from '../demo/main.ts'

/** `leasehold demo`: what it needs is loaded when it is asked for. */
export function addDemo(root: Command): void {
  root
    .command('demo')
    .description('See what it does: real processes edit real files, without and with Leasehold.')
    .option('--seconds <n>', 'how long each half takes', '20')
    .option('--agents <n>', 'how many processes', '8')
    .option('--keep', 'keep the repositories, to look at')
    .addHelpText('after', HELP)
    .action(async (_, self: Command) => {
      const { demo } = await import('../demo/main.ts')
      await demo(self.optsWithGlobals<DemoOptions>())
    })
}

const HELP = `
Eight processes work in a small git repository in a temporary folder: take a task, read a file,
think, write the whole file with one more line. First they share a to-do list that all of them edit,
as people do; then they run the same code, but claim tasks and reserve files. At the end, what each
process was told it had written is compared with what is in the files.

Examples:
  leasehold demo
  leasehold demo --seconds 5 --agents 16
  leasehold demo --keep                           then look with git log -p`
