import { Command, CommanderError } from 'commander'
import { plant, type Promised } from '../../core/planted.ts'
import { Refusal, REFUSALS } from '../../core/refusal.ts'
import { addOperations, type Enter } from './commands.ts'
import { type Context, contextOf, type GlobalOptions } from './context.ts'
import { addDashboard } from './dashboard.ts'
import { addDatabase } from './db.ts'
import { addDispatch } from './dispatch.ts'
import { addDoctor } from './doctor.ts'
import { NOUNS, PROGRAM } from './help.ts'
import { addMcp } from './mcp.ts'
import { addMemorySync } from './memory_sync.ts'
import { overview } from './overview.ts'
import { addRun } from './run.ts'
import { addServing } from './serving.ts'
import { addTokens } from './tokens.ts'
import { addTop } from './top.ts'
import { VERSION } from '../../daemon/version.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

/** The command line: one context, one program, one place where a refusal becomes an exit code. */
export async function main(argv: string[]): Promise<number> {
  let context: Context | undefined
  if (argv[0] === '--version') argv = ['-V']
  const end = argv.indexOf('--')
  const json = argv.slice(0, end === -1 ? argv.length : end).includes('--json')
  const enter = (options: GlobalOptions) =>
    (context = contextOf(options, process.env, process.cwd()))
  try {
    // A flag may come first, and `help` asks about another noun: then every command is needed.
    const asked = argv[0]?.startsWith('-') || argv[0] === 'help' ? undefined : argv[0]
    await program(enter, asked).parseAsync(argv, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    return fail(error, json)
  } finally {
    await context?.close()
  }
}

function program(enter: Enter, asked: string | undefined): Command {
  const root = new Command('leasehold')
    .description(PROGRAM.about)
    // Only -V here: --version is a field of `task edit`; main answers it when it stands alone.
    .version(VERSION, '-V')
    .option('--json', 'answer as JSON: the result on stdout, a refusal on stderr')
    .option('--agent <id>', 'who is asking (default: LEASEHOLD_AGENT, else cli:<login>@<host>)')
    .option('--force', 'act as admin: this login owns the store')
    .addHelpText('after', PROGRAM.examples)
    .exitOverride()
    // Help for a noun without a verb still goes to stderr; errors are ours to word.
    .configureOutput({ outputError: () => undefined })
    .allowExcessArguments()
    .configureHelp({ showGlobalOptions: true })
    .helpCommand('help [command]', 'display help for command')
    .action(async (_, self: Command) => {
      if (self.args.length > 0) throw unknownCommand(self)
      await overview(enter(self.optsWithGlobals()))
    })
  const nouns = new Map<string, Command>()
  const groups = (name: string) => {
    let group = nouns.get(name)
    if (!group) {
      group = root.command(name).description(NOUNS[name]?.about ?? '')
      if (NOUNS[name]) group.addHelpText('after', NOUNS[name].examples)
      nouns.set(name, group)
    }
    return group
  }
  addOperations(groups, enter, asked)
  addRun(root, enter)
  addDispatch(root, groups('runs'), enter)
  addDatabase(groups('db'), enter)
  addDoctor(root, enter)
  addServing(root, enter)
  addDashboard(root, enter)
  addMcp(root, enter)
  addTokens(groups('token'), enter)
  addMemorySync(groups('memory'), enter)
  addTop(root, enter)
  return root
}

function unknownCommand(root: Command): Refusal {
  const known = root.commands.map((command) => command.name()).join(', ')
  return new Refusal('invalid', `There is no command ${root.args[0]}`, {
    next: `Commands: ${known}. See: leasehold --help`,
  })
}

/** What happened, why, what to do next; and the exit code that the table gives it. */
function fail(error: unknown, json: boolean): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help') return REFUSALS.invalid.exit
    const message = error.message.replace(/^error: /, '')
    return fail(new Refusal('invalid', message, { next: 'See: leasehold --help' }), json)
  }
  const refusal = error instanceof Refusal ? error : internal(error)
  const text = json
    ? JSON.stringify(refusal)
    : `error: ${refusal.message}${refusal.next && `\n  next: ${refusal.next}`}`
  process.stderr.write(`${text}\n`)
  return REFUSALS[refusal.code].exit
}

function internal(error: unknown): Refusal {
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Refusal('internal', `This is a bug in leasehold: ${said}`, {
    next: 'Please report it, with what you ran.',
  })
}

// Only in the test build: tests show that each promise's check fails when the promise is broken.
if (typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD) {
  plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)
}

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code
})
