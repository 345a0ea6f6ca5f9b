import { Argument, type Command } from 'commander'
import { STATUSES } from '../../../core/rows.ts'
import { inputSchema, type JsonSchema } from '../../../operations/json_schema.ts'
import { flagOf } from '../../../operations/operation.ts'
import { operations } from '../../../operations/registry.ts'
import { io } from '../../io.ts'

/** Commands that say what all commands are: these need every one of them registered. */
export const ABOUT_ALL: ReadonlySet<string> = new Set(['help', 'completion'])

export function addCompletion(root: Command): void {
  root
    .command('completion')
    .addArgument(new Argument('<shell>').choices(Object.keys(COMPLETIONS)))
    .description('Print a script that completes commands in your shell.')
    .addHelpText('after', EXAMPLES)
    .action((shell: keyof typeof COMPLETIONS) => {
      io().stdout.write(COMPLETIONS[shell](knownCommands(root)))
    })
}

const EXAMPLES = `
Examples:
  eval "$(leasehold completion bash)"             in ~/.bashrc
  leasehold completion zsh > "\${fpath[1]}/_leasehold"
  leasehold completion fish | source              in ~/.config/fish/config.fish`

/** A command as shells are told of it. */
interface KnownCommand {
  /** Its words: `['lock', 'acquire']`; none for `leasehold` itself. */
  path: string[]
  about: string
  /** What may follow: commands, or the values of an argument that has only some. */
  words: { word: string; about: string }[]
  flags: { flag: string; about: string; takes: string | undefined; values: string[] }[]
}

/** Every command with its flags, the root first: all that `--help` would say, in one list. */
function knownCommands(root: Command): KnownCommand[] {
  const values = valuesByField()
  const global = root.options.filter(({ long }) => long)
  const visit = (command: Command, path: string[]): KnownCommand[] => {
    const key = path.join(' ')
    const of = (name: string) => values.get(`${key} ${name}`) ?? []
    const options = path.length === 0 ? global : command.options
    const known = {
      path,
      about: command.description(),
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

/** Scripts that complete commands, flags and values, made from what the commands say themselves. */
const COMPLETIONS = { bash, zsh, fish }

const keyOf = ({ path }: KnownCommand) => path.map((word) => `/${word}`).join('')
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`
const allKeys = (known: KnownCommand[]) => known.map(keyOf).filter(Boolean)

/** What can stand there, in one line: a script has no room for more. */
const brief = (about: string) => about.split(/(?<=\.) /)[0]!.replace(/\.$/, '')

function valueCases(known: KnownCommand[], offer: (values: string) => string): string[] {
  return known.flatMap((command) =>
    command.flags
      .filter(({ takes }) => takes)
      .map(({ flag, values }) => {
        return `    ${quoted(`${keyOf(command)} ${flag}`)}) ${offer(values.join(' '))}; return ;;`
      }),
  )
}

function bash(known: KnownCommand[]): string {
  const cases = known.map((command) => {
    const flags = command.flags.map(({ flag }) => flag)
    const words = [...command.words.map(({ word }) => word), ...flags]
    return `    ${quoted(keyOf(command))}) words=${quoted(words.join(' '))} ;;`
  })
  const values = valueCases(known, (list) => `__leasehold_values ${quoted(list)}`)
  return `# bash completion for leasehold: eval "$(leasehold completion bash)"
__leasehold_values() {
  # A value that can be anything is likely to be a file.
  if [ -n "$1" ]; then COMPREPLY=($(compgen -W "$1" -- "$cur")); return; fi
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$cur"))
}
_leasehold() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ "\${COMP_WORDS[i]}" = -- ]; then __leasehold_values ''; return; fi
    case "$path/\${COMP_WORDS[i]}" in
      ${allKeys(known).join('|')}) path=$path/\${COMP_WORDS[i]} ;;
    esac
  done
  case "$path $prev" in
${values.join('\n')}
  esac
  case "$path" in
${cases.join('\n')}
  esac
  [[ $cur == -* ]] && words="$words --json --agent --force --help"
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [ \${#COMPREPLY[@]} -gt 0 ] || __leasehold_values ''
}
complete -F _leasehold leasehold lh
`
}

function zsh(known: KnownCommand[]): string {
  const item = (word: string, about: string) =>
    quoted(`${word.replaceAll(':', String.raw`\:`)}:${brief(about)}`)
  const cases = known.map((command) => {
    const words = command.words.map(({ word, about }) => item(word, about))
    const flags = command.flags.map(({ flag, about }) => item(flag, about))
    return `    ${quoted(keyOf(command))}) found=(${[...words, ...flags].join(' ')}) ;;`
  })
  const values = valueCases(known, (list) => (list ? `compadd -- ${list}` : '_files'))
  return `#compdef leasehold lh
# zsh completion for leasehold: leasehold completion zsh > "\${fpath[1]}/_leasehold"
_leasehold() {
  local at= i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    if [[ \${words[i]} == -- ]]; then _files; return; fi
    case "$at/\${words[i]}" in
      ${allKeys(known).join('|')}) at=$at/\${words[i]} ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${values.join('\n')}
  esac
  case "$at" in
${cases.join('\n')}
  esac
  _describe leasehold found || _files
}
if [ "$funcstack[1]" = _leasehold ]; then _leasehold "$@"; else compdef _leasehold leasehold lh; fi
`
}

function fish(known: KnownCommand[]): string {
  const lines = known.flatMap((command) => {
    const at = `complete -c leasehold -n 'test "$(__leasehold_at)" = "${keyOf(command)}"'`
    const words = command.words.map(({ word, about }) => {
      return `${at} -f -a ${word}${about && ` -d ${quoted(brief(about))}`}`
    })
    const flags = command.flags.map(({ flag, about, takes, values }) => {
      const some = values.length > 0 ? ` -f -a ${quoted(values.join(' '))}` : ''
      return `${at} -l ${flag.slice(2)}${takes ? ' -r' : ''}${some} -d ${quoted(brief(about))}`
    })
    return [...words, ...flags]
  })
  return `# fish completion for leasehold: leasehold completion fish | source
function __leasehold_at
  set -l at ""
  for word in (commandline -opc)[2..]
    if contains -- "$at/$word" ${allKeys(known).join(' ')}
      set at "$at/$word"
    end
  end
  echo $at
end
${lines.join('\n')}
complete -c lh -w leasehold
`
}
