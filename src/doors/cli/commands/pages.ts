import { Argument, type Command } from 'commander'
import { knownCommands } from '../help/commands.ts'
import { COMPLETIONS } from '../help/completion.ts'
import { manPage } from '../help/man.ts'
import { io } from '../../io.ts'

/** Commands that say what all commands are: these need every one of them registered. */
export const ABOUT_ALL: ReadonlySet<string> = new Set(['help', 'completion', 'man'])

export function addPages(root: Command): void {
  root
    .command('completion')
    .addArgument(new Argument('<shell>').choices(Object.keys(COMPLETIONS)))
    .description('Print a script that completes commands in your shell.')
    .addHelpText('after', EXAMPLES)
    .action((shell: keyof typeof COMPLETIONS) => {
      io().stdout.write(COMPLETIONS[shell](knownCommands(root)))
    })
  root
    .command('man')
    .description('Print the manual page.')
    .addHelpText('after', '\nExamples:\n  leasehold man | man -l -')
    .action(() => void io().stdout.write(manPage(knownCommands(root))))
}

const EXAMPLES = `
Examples:
  eval "$(leasehold completion bash)"             in ~/.bashrc
  leasehold completion zsh > "\${fpath[1]}/_leasehold"
  leasehold completion fish | source              in ~/.config/fish/config.fish`
