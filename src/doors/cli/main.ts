import { Command, CommanderError } from 'commander'
import { hintOf } from '../../core/hint.ts'
import { nextText } from '../../core/next.ts'
import { Refusal, REFUSALS } from '../../core/refusal.ts'
import { asCommand } from '../../operations/command.ts'
import { safeJson, visible } from '../unseen.ts'
import { addOperations, type Enter } from './commands/operations.ts'
import { ABOUT_ALL, addCompletion } from './commands/completion.ts'
import { addConfig } from './commands/config.ts'
import { type Context, contextOf, type GlobalOptions } from './context.ts'
import { isForPeople, refuseAgents } from './family.ts'
import { addDatabase } from './commands/db.ts'
import { addDemo } from './commands/demo.ts'
import { addDispatch } from './commands/dispatch.ts'
import { addDoctor } from './commands/doctor.ts'
import { NOUNS, PROGRAM } from './help/help.ts'
import { arrange, SHOWN } from './help/shown.ts'
import { addGuard } from './commands/guard.ts'
import { addHook } from './commands/hook.ts'
import { addInit } from './commands/init.ts'
import { addMcp } from './commands/mcp.ts'
import { addMemorySync } from './commands/memory_sync.ts'
import { addRun } from './commands/run.ts'
import { addServing } from './commands/serving.ts'
import { addStatus } from './commands/status.ts'
import { addTokens } from './commands/tokens.ts'
import { addWorktrees } from './commands/worktree.ts'
import { clocked } from './show/table.ts'
import { saidNow } from './renamed.ts'
import { VERSION } from '../../machine/version.ts'
import { type Io, io, withIo } from '../io.ts'

/** Gives one command, and resolves with its exit code. */
export const main = (argv: string[], own: Io): Promise<number> => withIo(own, () => run(argv))

/** One context, one program, one place where a refusal becomes an exit code. */
async function run(argv: string[]): Promise<number> {
  let context: Context | undefined
  let root: Command | undefined
  if (argv[0] === '--version') argv = ['-V']
  const end = argv.indexOf('--')
  const json = argv.slice(0, end === -1 ? argv.length : end).includes('--json')
  const enter = (options: GlobalOptions) => (context = contextOf(options, io().env, io().cwd()))
  try {
    argv = saidNow(argv, (what) => void io().stderr.write(`note: ${what}\n`))
    // A flag may come first, and some ask about others: then every command is needed.
    const [first = '--help'] = argv
    const asked = first.startsWith('-') || ABOUT_ALL.has(first) ? undefined : first
    root = program(enter, asked)
    await root.parseAsync(argv, { from: 'user' })
    return Number(io().exitCode ?? 0)
  } catch (error) {
    return fail(error instanceof CommanderError ? misspelt(error, root, argv) : error, json)
  } finally {
    await context?.close()
  }
}

const OUTPUT = {
  writeOut: (text: string) => void io().stdout.write(text),
  writeErr: (text: string) => void io().stderr.write(text),
}

/** All commands; or, where a noun was `asked` for, those of that noun. */
export function program(enter: Enter, asked: string | undefined): Command {
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
    .configureOutput({ ...OUTPUT, outputError: () => undefined })
    .allowExcessArguments()
    .configureHelp({ showGlobalOptions: true, ...SHOWN })
    .helpCommand('help [command]', 'display help for command')
    .action((_, self: Command) => {
      if (self.args.length > 0) throw unknownCommand(self)
      self.outputHelp()
    })
  root.hook('preAction', (_, command) => {
    // Without a known command there is only the help, or a hint.
    if (!command.parent || !isForPeople(command)) return
    // Whom a token is made for is no matter of who makes it.
    const asking = enter({ ...command.optsWithGlobals(), agent: undefined })
    refuseAgents(command, asking.env, asking.family())
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
  addConfig(groups('config'), enter)
  addDoctor(root, enter)
  addServing(root, enter)
  addMcp(root, enter)
  addGuard(groups('reserve'), enter)
  addHook(root)
  addTokens(groups('token'), enter)
  addMemorySync(groups('memory'), enter)
  addInit(root)
  addDemo(root)
  addStatus(root, enter)
  addWorktrees(groups('worktree'), enter)
  addCompletion(root)
  for (const command of root.commands) refuseExcess(command)
  arrange(root)
  return root
}

/** A word too many is told: dropped, it would be missing in what is written. */
function refuseExcess(command: Command): void {
  command.allowExcessArguments(false)
  command.commands.forEach(refuseExcess)
}

function unknownCommand(root: Command): Refusal {
  const [given] = root.args as [string]
  const known = root.commands.map((command) => command.name())
  return new Refusal('invalid', `There is no command ${given}: ${hintOf(given, known)}`, {
    next: 'See: leasehold --help',
  })
}

/** What commander refuses, in our words, with the help of the command that was meant. */
function misspelt(error: CommanderError, root: Command | undefined, argv: string[]): unknown {
  if (error.exitCode === 0 || error.code === 'commander.help') return error
  let meant = root
  const words = ['leasehold']
  for (const word of argv) {
    const found = meant?.commands.find((each) => each.name() === word)
    if (found) words.push(word)
    meant = found ?? meant
  }
  const quote = error.code === 'commander.excessArguments'
  const next = `See: ${words.join(' ')} --help`
  return new Refusal('invalid', error.message.replace(/^error: /, ''), {
    next: quote ? `A text of several words is put in quotes. ${next}` : next,
  })
}

/** What happened, why, what to do next; and the exit code that the table gives it. */
function fail(error: unknown, json: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : REFUSALS.invalid.exit
  const refusal = outOfSandbox(error instanceof Refusal ? error : internal(error))
  const { message, actions } = refusal
  const next = actions.map((each) => nextText([each], asCommand)).join('\n        ')
  const text = json
    ? safeJson(refusal.inWords(asCommand))
    : visible(`error: ${clocked(message)}${next && `\n  next: ${next}`}`)
  io().stderr.write(`${text}\n`)
  return REFUSALS[refusal.code].exit
}

/** Codex runs commands without network, and lets them write in few folders. */
function outOfSandbox(refusal: Refusal): Refusal {
  const { code, message, details } = refusal
  if (code !== 'unavailable' || !io().env['CODEX_SANDBOX_NETWORK_DISABLED']) return refusal
  return new Refusal(code, message, { next: SANDBOX_NEXT, details })
}

const SANDBOX_NEXT =
  'The sandbox of Codex is in the way: use the tools of the MCP server leasehold, which runs ' +
  'outside of it. For the shell, a person can name the state folder in config.toml of Codex, ' +
  // reason: a section of that file
  'under [sandbox_workspace_write]: writable_roots = ["…/.leasehold"]; a token needs ' +
  'network_access = true there.'

function internal(error: unknown): Refusal {
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new Refusal('internal', `This is a bug in leasehold: ${said}`, {
    next: 'Please report it, with what you ran.',
  })
}
