import type { Command } from 'commander'
import { lockOf } from '../../../core/locks/lease.ts'
import { REFUSALS } from '../../../core/refusal.ts'
import { fieldOf } from '../../../operations/command.ts'
import { flagOf, type Operation } from '../../../operations/operation.ts'
import {
  type ByAnswer,
  operations,
  registered,
  type RegisteredName,
} from '../../../operations/registry.ts'
import { damageOf } from '../../../stores/care.ts'
import { folderOf } from '../../../stores/place.ts'
import { keepReserved } from '../../guard.ts'
import { placePaths } from '../../paths.ts'
import type { Context, GlobalOptions } from '../context.ts'
import { isBound, needsRole } from '../family.ts'
import { EXAMPLES } from '../help/help.ts'
import { unknownAgent, withHints } from '../hints.ts'
import { nothingToLand } from './land.ts'
import { show } from '../show/show.ts'
import { valueOf } from '../values.ts'
import { io } from '../../io.ts'

/** Short ways to say a common thing: the same operation with one field already filled in. */
const SHORT = [
  { command: 'task done id', of: 'task.status', fixed: { status: 'done' }, doc: 'Finish a task.' },
  {
    command: 'task cancel id',
    of: 'task.status',
    fixed: { status: 'cancelled' },
    doc: 'Cancel a task, as its holder, its creator, or an admin (--force).',
  },
] as const satisfies { of: RegisteredName; [more: string]: unknown }[]

export type Enter = (options: GlobalOptions) => Context

/**
 * Adds a command for every operation of the registry that has one; of those whose noun was not
 * asked for only the noun, because building them all costs more than running one.
 */
export function addOperations(
  groups: (name: string) => Command,
  enter: Enter,
  asked: string | undefined,
): void {
  const skips = (usage: string) => {
    const noun = usage.split(' ')[0]!
    return groups(noun) && asked !== undefined && asked !== noun
  }
  for (const operation of operations) {
    const { command } = operation
    if (command && !skips(command)) add(groups, enter, operation, command, operation.doc, {})
  }
  for (const { command, of, fixed, doc } of SHORT) {
    if (skips(command)) continue
    add(groups, enter, registered(of), command, doc, fixed)
  }
}

function add(
  groups: (name: string) => Command,
  enter: Enter,
  operation: Operation,
  usage: string,
  doc: string,
  fixed: Record<string, unknown>,
): void {
  const [noun, verb, ...positional] = usage.split(' ') as [string, ...string[]]
  // `land 42` is short for `land add 42`. A command of one word is its noun.
  const isDefault = operation.name === 'land.add'
  const group = groups(noun)
  const command = verb === undefined ? group : group.command(verb, { isDefault })
  needsRole(command, operation.role).description(doc)
  const words = verb === undefined ? noun : `${noun} ${verb}`
  const examples = EXAMPLES[operation.name as RegisteredName]
  if (examples) command.addHelpText('after', examples)
  const fields = positional.map(fieldOf)
  for (const [i, word] of positional.entries()) {
    command.argument(argumentOf(word, fields[i]!), operation.input[fields[i]!]!.doc)
  }
  const flags = new Map<string, string>()
  for (const [name, field] of Object.entries(operation.input)) {
    const flag = flagOf(name, field)
    if (fields.includes(name) || name in fixed || flag === undefined) continue
    flags.set(name, flag)
    // Commander's own way with lists would swallow the arguments that follow.
    if (flag.includes('...')) command.option(flag.replace('...', ''), field.doc, gather)
    else command.option(flag, field.doc)
  }
  markRequired(command, operation, flags)
  command.action(async (...args: unknown[]) => {
    const self = args.at(-1) as Command
    const context = enter(self.optsWithGlobals())
    const input: Record<string, unknown> = { ...fixed }
    for (const [i, name] of fields.entries()) {
      const given = args[i]
      const isMissing = given === undefined || (Array.isArray(given) && given.length === 0)
      // A fence goes with one lock, which is asked for as one.
      const isOne = Array.isArray(given) && given.length === 1
      if (isOne && name === 'names' && 'fence' in operation.input) input['name'] = given[0]
      else if (!isMissing) input[name] = valueOf(given, `<${name}>`)
    }
    for (const [name, flag] of flags) {
      const given = self.opts()[camel(flag)] as unknown
      if (given !== undefined) input[name] = valueOf(given, flag)
    }
    await answer(context, operation, input).catch((error: unknown) => {
      if (context.json) throw error
      const { caller } = context
      const isAgent = isBound(context.family())
      throw withHints(error, { command: words, operation, input, caller, isAgent })
    })
  })
}

/** Looked up when help is asked for: building schemas would slow down every start. */
function markRequired(command: Command, { input }: Operation, flags: Map<string, string>): void {
  command.configureHelp({
    ...command.configureHelp(),
    optionDescription: ({ description, flags: flag }) => {
      const [name] = [...flags].find(([, each]) => each.replace('...', '') === flag) ?? []
      const must = name !== undefined && !input[name]!.schema().safeParse(undefined).success
      return must ? `${description.replace(/\.$/, '')} (required).` : description
    },
  })
}

function argumentOf(word: string, name: string): string {
  const label = ['names', 'paths'].includes(name) ? name.slice(0, -1) : name
  const all = word.includes('…') ? `${label}...` : label
  return word.startsWith('[') ? `[${all}]` : `<${all}>`
}

const gather = (value: string, before: string[] = []) => [...before, value]

/** Commander's own name for a flag's value. */
const camel = (flag: string) =>
  flag
    .split(' ')[0]!
    .slice(2)
    .replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

async function answer(context: Context, operation: Operation, input: Record<string, unknown>) {
  const caller = operation.role === 'admin' ? { ...context.caller, admin: true } : context.caller
  if (operation.name === 'land.add') {
    input['id'] ??= context.env['LEASEHOLD_TASK'] ?? input['branch']
    if (input['id'] === undefined) throw await nothingToLand(io().cwd())
  }
  if ('fence' in operation.input) input['fence'] ??= fenceFromEnv(context, input)
  const abort = new AbortController()
  const stop = () => abort.abort()
  io().once('SIGINT', stop)
  try {
    const { signal } = abort
    const placed = placePaths(operation, input, context.place)
    const result = await context.call(operation, placed, { caller, signal })
    const name = operation.name as RegisteredName
    keepReserved(name, result, context.place)
    show(context, name, result as never)
    if (name === 'queue.add' && !context.json) warnOfAgent(context, input)
    if (operation.effect === 'read') await warnOfDamage(context)
    const exit: ((answer: never) => number | undefined) | undefined = EXITS[name]
    io().exitCode ??= exit?.(result as never)
  } finally {
    io().off('SIGINT', stop)
  }
}

function warnOfAgent({ place }: Context, input: Record<string, unknown>): void {
  const said = unknownAgent(folderOf(place), input)
  if (said !== undefined) io().stderr.write(`warning: ${said}\n`)
}

/** What is wrong with the store of this machine; of a server's, the server says it. */
export const knownDamage = async ({ place, env }: Context): Promise<string | undefined> =>
  env['LEASEHOLD_TOKEN'] ? undefined : damageOf(place)

/** A damaged store is read as far as it can be: something may lack, and the exit code says so. */
async function warnOfDamage(context: Context): Promise<void> {
  const message = await knownDamage(context)
  if (message === undefined) return
  io().stderr.write(`warning: ${message}\n  What is shown may lack what was written last.\n`)
  io().exitCode = REFUSALS.damaged.exit
}

/** No refusal, and nothing to work on: `claim && work` must not go on. */
const NOTHING_READY = 6

/** Some answers are no refusals, and still a script has to learn what they say. */
const EXITS: ByAnswer<number | undefined> = {
  'task.claim': ({ task }) => (task ? undefined : NOTHING_READY),
  'reserve.check': ({ items }) =>
    items.some(({ state }) => state === 'held') ? REFUSALS.held.exit : undefined,
}

/** `LEASEHOLD_FENCE` speaks for the lock in `LEASEHOLD_LOCK` only. */
function fenceFromEnv(context: Context, input: Record<string, unknown>): number | undefined {
  const { under } = context.caller
  const { name, id, task_id = id } = input
  const lock = typeof task_id === 'string' ? lockOf(task_id) : name
  return under && under.lock === lock ? under.fence : undefined
}
