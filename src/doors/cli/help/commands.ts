import type { Command } from 'commander'
import { STATUSES } from '../../../core/rows.ts'
import { isForPeople } from '../family.ts'
import { inputSchema, type JsonSchema } from '../../../operations/json_schema.ts'
import { flagOf } from '../../../operations/operation.ts'
import { operations } from '../../../operations/registry.ts'

/** A command as shells and the manual are told of it. */
export interface KnownCommand {
  /** Its words: `['lock', 'acquire']`; none for `leasehold` itself. */
  path: string[]
  about: string
  /** No agent may. */
  isForPeople: boolean
  /** What stands behind its words, as its help has it. */
  usage: string
  /** What may follow: commands, or the values of an argument that has only some. */
  words: { word: string; about: string }[]
  flags: { flag: string; about: string; takes: string | undefined; values: string[] }[]
}

/** Every command with its flags, the root first: all that `--help` would say, in one list. */
export function knownCommands(root: Command): KnownCommand[] {
  const values = valuesByField()
  const global = root.options.filter(({ long }) => long)
  const visit = (command: Command, path: string[]): KnownCommand[] => {
    const key = path.join(' ')
    const of = (name: string) => values.get(`${key} ${name}`) ?? []
    const options = path.length === 0 ? global : command.options
    const known = {
      path,
      about: command.description(),
      isForPeople: command.commands.length === 0 && isForPeople(command),
      usage: command.usage().replace(/^\[options\] ?/, ''),
      words: [
        ...command.commands.map((each) => ({ word: each.name(), about: each.description() })),
        ...command.registeredArguments
          .flatMap((each) => each.argChoices ?? of(each.name()))
          .map((word) => ({ word, about: '' })),
      ],
      flags: options.map(({ long, flags, description }) => ({
        flag: long!,
        about: description,
        takes: /[<[].*/.exec(flags)?.[0],
        values: of(long!),
      })),
    }
    return [known, ...command.commands.flatMap((each) => visit(each, [...path, each.name()]))]
  }
  return visit(root, [])
}

/** The values of fields that have only some, by the words of the command and the flag or field. */
function valuesByField(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { name, command = name.replace('.', ' '), input } of operations) {
    const path = command.split(' ', 2).join(' ')
    const { properties } = inputSchema(input) as { properties: Record<string, JsonSchema> }
    for (const [field, schema] of Object.entries(properties)) {
      const some = enumOf(schema)
      // Of a task, other spellings are understood too.
      const values = field === 'status' && some.length === 0 ? [...STATUSES] : some
      found.set(`${path} ${field}`, values)
      found.set(`${path} ${flagOf(field, input[field]!)?.split(' ')[0] ?? `--${field}`}`, values)
    }
  }
  return found
}

function enumOf(schema: JsonSchema): string[] {
  const {
    enum: some,
    anyOf = [],
    items,
  } = schema as {
    enum?: string[]
    anyOf?: JsonSchema[]
    items?: JsonSchema
  }
  return some ?? [...anyOf, ...(items ? [items] : [])].flatMap(enumOf)
}
