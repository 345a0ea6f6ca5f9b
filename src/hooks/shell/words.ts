import { forEachChild, type ParameterExpansionPart, type SyntaxNode, type WordPart } from 'unbash'
import type { Argument, ShellPlace } from './effects.ts'

/**
 * What variables hold, as far as the script itself says so; several values in a loop or an array.
 * One that the script does not set may hold anything.
 */
export type Variables = Map<string, Argument[]>

/** What words are read with: a folder, and what the script has set. */
export interface Scope {
  place: ShellPlace
  variables: Variables
}

/** A word of a script, or what stands in for one. */
interface Text {
  value?: string
  text?: string
  parts?: readonly WordPart[] | undefined
}

const ALTERNATIVES_MAX = 64
const BRACES = /\{([^{}]*,[^{}]*)\}|\{(\d{1,4})\.\.(\d{1,4})\}/
const GLOB = /[*?[]/

export const one = (text: string): Argument[] => [{ text, glob: false }]
/** What only a run would tell: it may be any of the texts that it is made of, or another. */
export const perhaps = (maybe: readonly string[]): Argument => ({
  text: undefined,
  glob: false,
  maybe: [...new Set(maybe)].slice(0, ALTERNATIVES_MAX),
})

/** The texts that these may be. */
export const textsOf = (values: readonly Argument[]): string[] =>
  values.flatMap(({ text, maybe = [] }) => (text === undefined ? maybe : [text]))

/** The variables of these words that have several values: their command runs once for each. */
export function loopVariables(words: readonly Text[], variables: Variables): string[] {
  const named = (part: SyntaxNode | WordPart): string[] => {
    if (part.type === 'SimpleExpansion') return [part.text.slice(1)]
    if (part.type === 'ParameterExpansion') return [part.parameter]
    return part.type === 'DoubleQuoted' ? part.parts.flatMap(named) : []
  }
  const names = words.flatMap(({ parts = [] }) => parts.flatMap(named))
  return [...new Set(names)].filter((name) => (variables.get(name)?.length ?? 0) > 1)
}

/**
 * What a word becomes: one value, more with braces or where a variable holds several. What a
 * variable is given stays `whole`.
 */
export function valuesOf(
  { value = '', text = value, parts }: Text,
  scope: Scope,
  whole = false,
): Argument[] {
  const home = scope.variables.get('HOME')
  if (!parts) return tilde(value, text, scope, home)
  const [only] = parts
  if (parts.length === 1 && only?.type.endsWith('Expansion')) {
    const values = partValues(only, scope)
    return whole ? values : split(values)
  }
  return joined(parts, scope)
}

/** `~` is what HOME holds, also where the script has changed it; `~+` is where it stands. */
function tilde(value: string, text: string, { place }: Scope, home = one(place.home)): Argument[] {
  const [start, which] = /^~(\+?)(?=\/|$)/.exec(text) ?? []
  if (start === undefined) return one(value)
  const [to] = which === '+' ? one(place.cwd ?? '.') : home
  return [together(to!, { text: value.slice(start.length), glob: false })]
}

function joined(parts: readonly WordPart[], scope: Scope): Argument[] {
  let found: Argument[] = one('')
  for (const [i, part] of parts.entries()) {
    const isFirst = i === 0 && part.type === 'Literal'
    const next = isFirst ? valuesOf(part, scope) : partValues(part, scope)
    found = found.flatMap((value) => next.map((each) => together(value, each)))
    if (found.length > ALTERNATIVES_MAX) return [perhaps(textsOf(found))]
  }
  return found
}

function together(a: Argument, b: Argument): Argument {
  if (a.text !== undefined && b.text !== undefined) {
    return { text: a.text + b.text, glob: a.glob || b.glob }
  }
  const [before, after] = [textsOf([a]), textsOf([b])]
  const both = before.flatMap((one_) => after.map((other) => one_ + other))
  return perhaps([...both, ...before, ...after].filter(Boolean))
}

/** Without quotes the shell takes a value apart at its blanks, and looks for files. */
const split = (values: Argument[]): Argument[] =>
  values.flatMap(({ text, glob, maybe }): Argument[] => {
    if (text === undefined) return [perhaps((maybe ?? []).flatMap((each) => each.split(/\s+/)))]
    const words = text.split(/\s+/).filter(Boolean)
    return words.map((each) => ({ text: each, glob: glob || GLOB.test(each) }))
  })

function partValues(part: WordPart, scope: Scope): Argument[] {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return one(part.value)
    case 'Glob':
      return [{ text: part.text, glob: true }]
    case 'ExtendedGlob':
      return [{ text: '*', glob: true }]
    case 'DoubleQuoted':
    case 'LocaleString':
      return part.parts.reduce<Argument[]>((found, each) => {
        const next = partValues(each, scope)
        return found.flatMap((value) => next.map((more) => together(value, more)))
      }, one(''))
    case 'SimpleExpansion':
      return variable(part.text.slice(1), scope)
    case 'ParameterExpansion':
      return parameter(part, scope)
    case 'BraceExpansion':
      return alternatives(part, scope)
    case 'CommandExpansion':
      return printed(part, scope)
    default:
      return [perhaps([])]
  }
}

function variable(name: string, { variables, place }: Scope): Argument[] {
  if (name === 'PWD') return place.cwd === undefined ? [perhaps([])] : one(place.cwd)
  return variables.get(name === '*' ? '@' : name) ?? [perhaps([])]
}

/** `{a,b}` and `{1..3}`; braces that hold neither stay as they are. */
function alternatives({ text, parts = [] }: Text, scope: Scope): Argument[] {
  const isPlain = parts.every(({ type }) => /^(?:Literal|Glob|BraceExpansion)$/.test(type))
  if (isPlain) {
    return expandBraces(text!).map((each) => ({ text: each, glob: GLOB.test(each) }))
  }
  const inner = textsOf(parts.flatMap((part) => partValues(part, scope)))
  return [perhaps(inner.flatMap((each) => each.split(',')))]
}

function expandBraces(text: string): string[] {
  const match = BRACES.exec(text)
  if (!match) return [text]
  const [whole, listed, from, to] = match
  const range = (first: number, last: number) =>
    Array.from({ length: Math.min(Math.abs(last - first) + 1, ALTERNATIVES_MAX) }, (_, i) =>
      String(first < last ? first + i : first - i),
    )
  return (listed?.split(',') ?? range(Number(from), Number(to))).flatMap((each) =>
    expandBraces(text.slice(0, match.index) + each + text.slice(match.index + whole.length)),
  )
}

/** `${name}`, and what may change it on the way. */
function parameter(part: ParameterExpansionPart, scope: Scope): Argument[] {
  const { parameter: name, prefix, operation } = part
  const values = variable(name, scope)
  if (prefix === '#') return [perhaps([])]
  if (prefix === '!') return textsOf(values).flatMap((each) => variable(each, scope))
  if (operation === undefined) return values
  if (operation.type === 'Default' && !operation.operator.includes('+')) {
    if (values.every(({ text }) => text)) return values
    // Set by nobody here; the environment may have it.
    return [perhaps([...textsOf(values), ...textsOf(valuesOf(operation.operand, scope))])]
  }
  if (operation.type === 'Remove') {
    const [pattern] = valuesOf(operation.operand, scope)
    const { operator } = operation
    if (pattern?.text !== undefined) return values.map((each) => without(each, pattern, operator))
  }
  const texts = textsOf(values)
  if (operation.type === 'Replace') {
    const [from = '', to = ''] = [operation.pattern, operation.replacement].map(
      ({ value }) => value,
    )
    return [perhaps([...texts, ...texts.map((text) => text.replaceAll(from, () => to))])]
  }
  return [perhaps([...texts, ...wordsIn(part, scope)])]
}

/** `${f%.ts}`, `${f##*\/}`: a value without what stands at its end or its beginning. */
function without(value: Argument, { text: pattern = '' }: Argument, operator: string): Argument {
  const { text } = value
  if (text === undefined) return value
  const cuts = Array.from({ length: text.length + 1 }, (_, i) => i)
  const isEnd = operator.startsWith('%')
  // Of a suffix the shortest begins last, of a prefix the shortest ends first.
  const order = isEnd === (operator.length === 1) ? cuts.toReversed() : cuts
  const matcher = new RegExp(`^${patternSource(pattern)}$`, 'su')
  const at = order.find((i) => matcher.test(isEnd ? text.slice(i) : text.slice(0, i)))
  if (at === undefined) return value
  return { ...value, text: isEnd ? text.slice(0, at) : text.slice(at) }
}

const patternSource = (pattern: string) =>
  pattern.replaceAll(/[*?]|[\\^$.+()[\]{}|]/g, (each) =>
    each === '*' ? '.*' : each === '?' ? '.' : `\\${each}`,
  )

/** What a command would print is one of its words, as far as anybody can say. */
function printed(part: Extract<WordPart, { type: 'CommandExpansion' }>, scope: Scope): Argument[] {
  const { place } = scope
  const { cwd } = place
  const asked = part.text.replaceAll(/^\$\(\s*|\s*\)$/g, '')
  if (cwd !== undefined && asked === 'pwd') return one(cwd)
  if (cwd !== undefined && asked === 'git rev-parse --show-toplevel') {
    const parts = cwd.split('/')
    const tops = parts.map((_, i) => parts.slice(0, parts.length - i).join('/') || '/')
    const top = tops.find((each) => place.isThere(`${each}/.git`))
    if (top !== undefined) return one(top)
  }
  return [perhaps(part.script ? wordsIn(part.script, scope) : [])]
}

/** All that the words in a part of a script name. */
export function wordsIn(node: SyntaxNode, scope: Scope): string[] {
  const found: string[] = []
  const look = (each: SyntaxNode): void => {
    if (found.length > ALTERNATIVES_MAX) return
    if (each.type === 'HereDocBody') found.push(each.text)
    const isPipe = each.type === 'Word' && each.parts?.[0]?.type === 'ProcessSubstitution'
    if (each.type === 'Word' && !isPipe) found.push(...textsOf(valuesOf(each, scope)))
    else forEachChild(each, look)
  }
  if (node.type === 'Word') look(node)
  else forEachChild(node, look)
  return [...found, ...found.flatMap((each) => each.split(/\s+/))].filter(Boolean)
}
