import { resolve } from 'node:path'
import { type Argument, type Effects, noEffects, type ShellPlace } from './effects.ts'
import { tokensOf } from './lexer.ts'
import { bareText, literalText, type WordPart, type ShellToken } from './tokens.ts'
import { loopVariables, type WordValue, valuesOf, type Variables } from './words.ts'
import { perform } from './commands.ts'

/** Words that begin or end a construct; what follows them is a command again. */
const LEADING = new Set(['if', 'then', 'elif', 'else', 'while', 'until', 'do', '!', '{', 'coproc'])
const TRAILING = new Set(['fi', 'done', 'esac', '}'])
const DECLARING = new Set(['export', 'declare', 'local', 'readonly', 'typeset'])
const ROUNDS_MAX = 64
const SCRIPT_MAX = 200_000
/** `bash -c "bash -c …"`: deeper ones are not looked at. */
const NESTING_MAX = 8

/** What the shell command `text` would write, commit, push or throw away. Reads nothing. */
export function effectsOf(text: string, place: ShellPlace): Effects {
  const effects = noEffects()
  const walker = new Walker(effects, place, new Map([['HOME', one(place.home)]]), 0)
  walker.run(tokensOf(text.slice(0, SCRIPT_MAX)))
  return effects
}

const one = (text: string): WordValue[] => [{ text, glob: false }]

interface Simple {
  words: WordPart[][]
  redirects: { op: string; parts: WordPart[] }[]
  /** Runs in a shell of its own: what it does to the folder or to variables stays there. */
  apart: boolean
}

class Walker {
  private readonly place: ShellPlace
  private readonly variables: Variables

  constructor(
    private readonly effects: Effects,
    place: ShellPlace,
    variables: Variables,
    private readonly nesting: number,
  ) {
    this.place = { ...place }
    this.variables = new Map(variables)
  }

  private inside(more = 0): Walker {
    return new Walker(this.effects, this.place, this.variables, this.nesting + more)
  }

  run(tokens: readonly ShellToken[]): void {
    let piped = false
    for (let at = 0; at < tokens.length;) {
      const token = tokens[at]!
      if (token.kind === 'script') {
        this.inside().run(token.tokens)
        at += 1
      } else if (token.kind === 'op' && token.op === '(') {
        const end = closing(tokens, at)
        this.inside().run(tokens.slice(at + 1, end))
        at = end + 1
      } else if (token.kind === 'op') {
        piped = token.op.startsWith('|') && token.op !== '||'
        at += 1
      } else {
        const end = commandEnd(tokens, at)
        const next = tokens[end]
        const op = next?.kind === 'op' ? next.op : ';'
        const apart = piped || op === '|' || op === '|&' || op === '&'
        this.command(tokens.slice(at, end), apart)
        at = end
      }
    }
  }

  private command(tokens: readonly ShellToken[], apart: boolean): void {
    for (const token of tokens) if (token.kind === 'script') this.inside().run(token.tokens)
    const words: WordPart[][] = []
    const redirects: Simple['redirects'] = []
    let rest = tokens.filter((token) => token.kind !== 'script')
    while (LEADING.has(bareText(rest[0]) ?? '')) rest = rest.slice(1)
    if (bareText(rest[0]) === 'for' || bareText(rest[0]) === 'select') return this.loop(rest)
    if (bareText(rest[0]) === 'case') return
    if (bareText(rest[0]) === 'function') rest = rest.slice(2)
    if (TRAILING.has(bareText(rest[0]) ?? '')) rest = rest.slice(1)
    for (let i = 0; i < rest.length; i += 1) {
      const token = rest[i]!
      if (token.kind === 'word') words.push(token.parts)
      else if (token.kind === 'redirect') {
        const target = rest[i + 1]
        if (target?.kind === 'word') redirects.push({ op: token.op, parts: target.parts })
        i += 1
      }
    }
    this.each({ words, redirects, apart })
  }

  /** `for name in words`: in the body the name has all of these values. */
  private loop(tokens: readonly ShellToken[]): void {
    const name = bareText(tokens[1])
    const start = tokens.findIndex((token) => bareText(token) === 'in')
    if (name === undefined) return
    const values: WordValue[] = []
    let known = start !== -1
    for (const token of tokens.slice(start + 1)) {
      const found = token.kind === 'word' ? this.values(token.parts) : undefined
      if (found) values.push(...found)
      else known = false
    }
    this.variables.set(name, known && values.length <= ROUNDS_MAX ? values : undefined)
  }

  private values(parts: readonly WordPart[]): WordValue[] | undefined {
    const { cwd, home } = this.place
    const known = new Map(this.variables)
    if (cwd !== undefined) known.set('PWD', one(cwd))
    return valuesOf(parts, known, home)
  }

  /** Once for every value of the loops that it is in. */
  private each(simple: Simple): void {
    const all = [...simple.words, ...simple.redirects.map(({ parts }) => parts)]
    const [name] = loopVariables(all, this.variables)
    const values = name === undefined ? undefined : this.variables.get(name)
    if (name === undefined || !values) return this.once(simple)
    for (const value of values) {
      this.variables.set(name, [value])
      this.each(simple)
    }
    this.variables.set(name, values)
  }

  private once({ words, redirects, apart }: Simple): void {
    const input = this.redirect(redirects)
    const rest = this.assign(words, apart)
    const name = rest[0] && literalText(rest[0])
    if (name === undefined && rest.length === 0) return
    if (DECLARING.has(name ?? '')) this.assign(rest.slice(1), apart)
    if (name === 'read') this.forget(rest.slice(1))
    const args = rest.flatMap((parts): Argument[] => {
      return this.values(parts) ?? [{ text: undefined, glob: false }]
    })
    const [first, ...others] = args
    if (first?.text === undefined || first.glob) return
    const place = { ...this.place }
    const invocation = { name: first.text, args: others, place, input }
    perform(invocation, this.effects, (script, at) => this.script(script, at))
    if (!apart) this.place.cwd = place.cwd
  }

  /** What was read is known to nobody beforehand. */
  private forget(words: readonly WordPart[][]): void {
    for (const parts of words) this.variables.set(literalText(parts) ?? '', undefined)
  }

  /** `bash -c script`, and what else hands a script over. */
  private script(text: string, { cwd }: ShellPlace): void {
    if (this.nesting >= NESTING_MAX) return
    const inner = this.inside(1)
    inner.place.cwd = cwd
    inner.run(tokensOf(text))
  }

  /** Takes `NAME=value` off the front; without a command they are kept. */
  private assign(words: readonly WordPart[][], apart: boolean): WordPart[][] {
    const assigned: [string, WordValue[] | undefined][] = []
    let i = 0
    for (; i < words.length; i += 1) {
      const [head, ...tail] = words[i]!
      if (head?.kind !== 'text' || head.quoted) break
      const match = /^([A-Za-z_]\w*)(\+?=)(.*)$/s.exec(head.text)
      if (!match) break
      const value = [{ kind: 'text' as const, text: match[3]!, quoted: false }, ...tail]
      const found = match[2] === '=' ? this.values(value) : undefined
      assigned.push([match[1]!, found?.map(({ text }) => ({ text, glob: false }))])
    }
    if (i === words.length && !apart) for (const [k, v] of assigned) this.variables.set(k, v)
    return words.slice(i)
  }

  private redirect(redirects: Simple['redirects']): { file?: string; text?: string } {
    const input: { file?: string; text?: string } = {}
    for (const { op, parts } of redirects) {
      if (op === '<<' || op === '<<<') {
        const text = literalText(parts)
        if (text !== undefined) input.text = text
        continue
      }
      for (const { text, glob } of this.values(parts) ?? []) {
        const path = this.path(text)
        if (path === undefined || text === '') continue
        if (op === '<') input.file = path
        // `2>&1` and `>&-` name no file.
        else if (op === '<&' || (op === '>&' && /^(?:\d+|-)$/.test(text))) continue
        else this.effects.writes.push({ path, kind: glob ? 'glob' : 'file' })
      }
    }
    return input
  }

  private path(text: string): string | undefined {
    const { cwd } = this.place
    if (text.startsWith('/')) return resolve(text)
    return cwd === undefined ? undefined : resolve(cwd, text)
  }
}

/** The index of the parenthesis that closes the one at `at`; the end if none does. */
function closing(tokens: readonly ShellToken[], at: number): number {
  let open = 0
  for (let i = at; i < tokens.length; i += 1) {
    const token = tokens[i]!
    if (token.kind !== 'op') continue
    if (token.op === '(') open += 1
    else if (token.op === ')' && (open -= 1) === 0) return i
  }
  return tokens.length
}

function commandEnd(tokens: readonly ShellToken[], at: number): number {
  for (let i = at; i < tokens.length; i += 1) if (tokens[i]!.kind === 'op') return i
  return tokens.length
}
