import type { Refusal } from '../core/refusal.ts'
import { type Field, flagOf, type Operation } from '../operations/operation.ts'
import { operations } from '../operations/registry.ts'

/** How a door says that an operation is to be called; undefined where it cannot be. */
export type Say = (operation: Operation, input: Record<string, unknown>) => string | undefined

/**
 * A refusal in the words of a door. What to do next is written for people at a command line; a
 * program that asks over HTTP, or a model with tools, is told the call that does the same.
 */
export function inWordsOf(refusal: Refusal, say: Say): ReturnType<Refusal['toJSON']> {
  const { error } = refusal.toJSON()
  return { error: { ...error, next: worded(error.next, say) } }
}

const COMMAND = /\bleasehold (?=[a-z])/g
const TOKEN = / ('(?:[^']|'\\'')*'|[^\s']+)/y
/** Of what no door but the command line can do, a person is told the command alone. */
const FLAG = / --[a-z][a-z-]*(?: (?!-)[^\s.,;)]+)?/
/** What stands in quotes is a name or somebody's words: nothing in it is a flag. */
const QUOTED = /"(?:[^"\\]|\\.)*"|(?<=^|[\s(=])'(?:[^']|'\\'')*'/
const FLAGS = new RegExp(`(${QUOTED.source})|${FLAG.source}`, 'g')

export function worded(text: string, say: Say): string {
  let made = ''
  let from = 0
  for (const { index } of text.matchAll(COMMAND)) {
    // What somebody else wrote stands in quotes, and says nothing for us.
    if (index < from || text.slice(0, index).split('"').length % 2 === 0) continue
    const { words, end } = wordsAt(text, index + 'leasehold'.length)
    const operation = called.get(words.slice(0, 2).join(' ')) ?? called.get(words[0]!)
    const read = operation && inputOf(operation, words)
    const said = read && say(operation, read.input)
    if (!read || said === undefined) continue
    made += text.slice(from, index) + said
    from = read.taken === words.length ? end : wordsAt(text, index + 9, read.taken).end
  }
  return (made + text.slice(from)).replaceAll(FLAGS, (_, quoted: string = '') => quoted)
}

/** The words of a command, up to the end of its sentence or clause. */
function wordsAt(text: string, start: number, most = 50): { words: string[]; end: number } {
  const words: string[] = []
  TOKEN.lastIndex = start
  for (let end = start; ;) {
    const token = words.length < most ? TOKEN.exec(text)?.[1] : undefined
    if (token === undefined) return { words, end }
    const bare = token.startsWith("'") ? token : token.replace(/[.,;:)]+$/, '')
    words.push(bare.replaceAll(/^'|'$/g, '').replaceAll(String.raw`'\''`, "'"))
    end = TOKEN.lastIndex - (token.length - bare.length)
    if (bare !== token) return { words, end }
  }
}

const partsOf = (command: string) => command.split(' ')

/** By the words that call them: `lock release`, `stats`. What else a command has are arguments. */
const called = new Map(
  operations.map((each) => [
    partsOf(each.command ?? '')
      .slice(0, 2)
      .join(' '),
    each,
  ]),
)

/** What the arguments and flags of a command say, and how many words they are. */
function inputOf({ command = '', input: fields }: Operation, words: string[]) {
  const names = partsOf(command)
    .slice(2)
    .map((each) => each.replaceAll(/[[\]\u2026]/g, ''))
  const input: Record<string, unknown> = {}
  let taken = Math.min(2, partsOf(command).length)
  for (; taken < words.length; taken += 1) {
    const word = words[taken]!
    const isNamed = ([name, field]: [string, Field]) => flagOf(name, field)?.split(' ')[0] === word
    const [name, field] = Object.entries(fields).find(isNamed) ?? []
    if (name !== undefined && field) {
      const flag = flagOf(name, field)!
      input[name] = flag.includes('<') ? valueOf(words[++taken] ?? '', flag) : true
    } else if (!word.startsWith('--') && names.length > 0) {
      const place = names.shift()!
      input[place] = place.endsWith('s') && place !== 'status' ? [word] : word
    } else break
  }
  return { input, taken }
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600 }

function valueOf(word: string, flag: string): unknown {
  const [, amount, unit = 's'] = /^(\d+)([smh])?$/.exec(word) ?? []
  if (amount === undefined || !/<(?:n|n\|null|duration)>/.test(flag)) return word
  return Number(amount) * (flag.includes('<duration>') ? SECONDS[unit]! : 1)
}
