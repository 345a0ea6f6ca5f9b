import type { KnownCommand } from './commands.ts'

/** Scripts that complete commands, flags and values, made from what the commands say themselves. */
export const COMPLETIONS = { bash, zsh, fish }

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
