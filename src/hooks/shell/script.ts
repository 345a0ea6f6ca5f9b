import {
  type Assignment,
  type Command,
  forEachChild,
  type Function as ShellFunction,
  parse,
  type ParsedScript,
  type Redirection,
  type SyntaxNode,
  type Word,
} from 'unbash'
import { perform } from './commands.ts'
import {
  type Argument,
  type Effects,
  type StandardInput,
  noEffects,
  type ShellPlace,
  type Target,
} from './effects.ts'
import { addGuessed, isTangled } from './guess.ts'
import {
  loopVariables,
  one,
  perhaps,
  type Scope,
  textsOf,
  valuesOf,
  type Variables,
  wordsIn,
} from './words.ts'
import { pathOf, targetsOf } from './options.ts'

const DECLARING = new Set(['export', 'declare', 'local', 'readonly', 'typeset'])
const READING = new Set(['read', 'mapfile', 'readarray'])
const ROUNDS_MAX = 64
/** `bash -c "bash -c …"`, and functions that call functions: deeper ones are guessed. */
const NESTING_MAX = 8
const STEPS_MAX = 5_000

/**
 * What the shell command `text` would write, commit, push or throw away. Reads no file. What it
 * does not understand counts for every file that its words name, if anything in it may write.
 */
export function effectsOf(text: string, place: ShellPlace): Effects {
  const effects = noEffects()
  const home: Variables = new Map([['HOME', one(place.home)]])
  new Walker(effects, place, home, { count: 0 }).script(text)
  const writes = new Map<string, Target>()
  for (const each of effects.writes) {
    const key = `${each.kind} ${each.path}`
    if (each.removes || !writes.has(key)) writes.set(key, each)
  }
  return { ...effects, writes: [...writes.values()] }
}

class Walker implements Scope {
  readonly place: ShellPlace
  readonly variables: Variables
  private functions = new Map<string, ShellFunction>()
  private input: StandardInput = {}

  constructor(
    private readonly effects: Effects,
    place: ShellPlace,
    variables: Variables,
    private readonly steps: { count: number },
    private readonly nesting = 0,
  ) {
    this.place = { ...place }
    this.variables = new Map(variables)
  }

  private inside(more = 0): Walker {
    const { effects, place, variables, steps, nesting } = this
    const inner = new Walker(effects, place, variables, steps, nesting + more)
    inner.functions = new Map(this.functions)
    inner.input = this.input
    return inner
  }

  /** Reads `text` in this shell. */
  script(text: string): void {
    if (this.nesting > NESTING_MAX || isTangled(text)) return this.guess(text)
    try {
      // zsh writes over a file by `>!`.
      const script = parse(text.replaceAll(/>!(?=\s)/g, '>|'))
      if (script.errors) this.guess(text)
      this.look(script)
    } catch {
      this.guess(text)
    }
  }

  private guess(text: string): void {
    addGuessed(text, this.place, this.effects)
  }

  private readonly look = (node: SyntaxNode): void => {
    switch (node.type) {
      case 'Command':
        return this.command(node)
      case 'Pipeline':
        return this.pipeline(node.commands)
      case 'Statement':
        return (node.background ? this.inside() : this).look(node.command)
      case 'Subshell':
      case 'Coproc':
        return this.inside().look(node.body)
      case 'CommandExpansion':
      case 'ArithmeticCommandExpansion':
      case 'ProcessSubstitution':
        return this.substituted(node)
      case 'ParameterExpansion':
        if (node.operation?.type === 'Default' && node.operation.operator.endsWith('=')) {
          this.variables.set(node.parameter, valuesOf({ parts: [node] }, this))
        }
        return forEachChild(node, this.look)
      case 'Redirected':
        return this.redirected(node.redirects, node.command)
      case 'For':
      case 'Select':
        this.loop(node.name.value, node.wordlist)
        return this.look(node.body)
      case 'Function':
        this.functions.set(node.name.value, node)
        return this.inside().look(node.body)
      default:
        forEachChild(node, this.look)
    }
  }

  /** What it prints is not known, what it does is looked at. */
  private substituted({ script, text }: { script: ParsedScript | undefined; text: string }): void {
    if (script?.errors) this.guess(text)
    if (script) this.inside().look(script)
  }

  /** Each in a shell of its own; one may hear the words of those before it. */
  private pipeline(commands: readonly SyntaxNode[]): void {
    let maybe: string[] | undefined
    for (const command of commands) {
      const walker = commands.length > 1 ? this.inside() : this
      if (maybe) walker.input = { maybe }
      walker.look(command)
      if (commands.length > 1) maybe = [...(maybe ?? []), ...wordsIn(command, this)]
    }
  }

  private redirected(redirects: readonly Redirection[], command: SyntaxNode): void {
    for (const each of redirects) forEachChild(each, this.look)
    const before = this.input
    this.input = this.redirect(redirects)
    this.look(command)
    this.input = before
  }

  /** `for name in words`: in the body the name has all of these values. */
  private loop(name: string, words: readonly Word[] | undefined): void {
    for (const word of words ?? []) forEachChild(word, this.look)
    const values = words?.flatMap((word) => valuesOf(word, this)) ?? this.variables.get('@') ?? []
    const isMany = values.length > ROUNDS_MAX || values.length === 0
    this.variables.set(name, isMany ? [perhaps(textsOf(values))] : values)
  }

  private command(node: Command): void {
    forEachChild(node, this.look)
    this.each(node)
  }

  /** Once for every value of the loops that it is in. */
  private each(node: Command): void {
    if ((this.steps.count += 1) > STEPS_MAX) return
    const words = [node.name, ...node.args, ...node.redirects.map(targetOf)].filter(isWord)
    const [name] = loopVariables(words, this.variables)
    const values = name === undefined ? undefined : this.variables.get(name)
    if (name === undefined || !values) return this.once(node)
    for (const value of values) {
      this.variables.set(name, [value])
      this.each(node)
    }
    this.variables.set(name, values)
  }

  private once(node: Command): void {
    const input = this.redirect(node.redirects)
    const set = node.prefix.filter((each) => each.type === 'Assignment')
    if (!node.name) return this.assign(set)
    const [head, ...more] = valuesOf(node.name, this)
    const args = [...more, ...node.args.flatMap((each) => this.argument(each))]
    // A name that only a run would tell may be any of the words that it is made of.
    for (const name of textsOf(head ? [head] : [])) this.named(name, args, node, input)
  }

  private argument(arg: Word | Assignment): Argument[] {
    return arg.type === 'Word' ? valuesOf(arg, this) : one(arg.text)
  }

  private named(name: string, args: Argument[], node: Command, input: StandardInput): void {
    if (DECLARING.has(name)) this.assign(node.args.filter((each) => each.type === 'Assignment'))
    if (READING.has(name)) this.fill(args, input)
    if (name === 'printf' && args[0]?.text === '-v') this.fill(args.slice(1, 2), {}, args.slice(2))
    if (name === 'set' || name === 'shift') this.position(name === 'set' ? args : [])
    const called = this.functions.get(name)
    if (called && this.nesting < NESTING_MAX) return this.call(called, args)
    const place = { ...this.place }
    const [home] = textsOf(this.variables.get('HOME') ?? [])
    if (home !== undefined) place.home = home
    const set = node.prefix.filter((each) => each.type === 'Assignment')
    perform({ name, args, place, input }, this.effects, (text, at, given = []) => {
      const inner = this.inside(1)
      inner.assign(set)
      for (const [key, value] of at.set ?? []) inner.variables.set(key, [value])
      inner.place.cwd = at.cwd
      inner.position(given)
      inner.script(text)
    })
    this.place.cwd = place.cwd
  }

  private call(called: ShellFunction, args: Argument[]): void {
    const inner = this.inside(1)
    inner.position(args)
    inner.look(called.body)
    this.place.cwd = inner.place.cwd
  }

  /** `$1` and the like. */
  private position(args: readonly Argument[]): void {
    const given = args.filter(({ text }) => text !== '--')
    for (let i = 1; i <= 9; i += 1) this.variables.delete(String(i))
    for (const [i, each] of given.entries()) this.variables.set(String(i + 1), [each])
    this.variables.set('@', given.length > 0 ? given : [perhaps([])])
  }

  /** What was read is known to nobody beforehand: one of the words that stood there, perhaps. */
  private fill(
    names: readonly Argument[],
    { text, maybe = [] }: StandardInput,
    more: Argument[] = [],
  ) {
    const words = [...maybe, ...(text?.split(/\s+/) ?? []), ...textsOf(more)]
    for (const name of [...textsOf(names), 'MAPFILE', 'REPLY']) {
      this.variables.set(name, [perhaps(words)])
    }
  }

  private assign(assigned: readonly Assignment[]): void {
    for (const { name, value, append, index } of assigned) {
      const elements = value.type === 'Word' ? [value] : value.elements
      const found = elements.flatMap((each) => this.assigned(each))
      const before = append || index ? (this.variables.get(name) ?? []) : []
      const isList = value.type === 'ArrayValue' || index !== undefined
      const texts = [...before, ...found]
      const [first, ...rest] = texts
      const isJoined = append && !isList && before.length > 0
      const [last] = found
      if (isJoined && last) {
        this.variables.set(
          name,
          before.map((each) => appended(each, last)),
        )
      } else if (rest.length >= ROUNDS_MAX) this.variables.set(name, [perhaps(textsOf(texts))])
      else this.variables.set(name, first ? texts : one(''))
    }
  }

  /** A value is not taken apart, nor looked up, before it is used. */
  private assigned(word: Word): Argument[] {
    return valuesOf(word, this, true).map(({ text, maybe }) => {
      return text === undefined ? perhaps(maybe ?? []) : { text, glob: false }
    })
  }

  private redirect(redirects: readonly Redirection[]): StandardInput {
    const input: StandardInput = { ...this.input }
    for (const each of redirects) {
      if (each.type === 'HereDoc') {
        const { text, parts } = each.body
        const [body] = valuesOf({ value: text, text: '', parts }, this, true)
        input.text = body?.text ?? text
        continue
      }
      const values = each.target ? valuesOf(each.target, this) : []
      if (each.type === 'HereString') input.text = textsOf(values).join('\n')
      else if (each.operator === '<') {
        const [{ text } = { text: undefined }] = values
        const path = text === undefined ? undefined : pathOf(this.place, text)
        if (path !== undefined) input.file = path
        // `< <(ls)` is a pipe.
        else if (each.target) input.maybe = wordsIn(each.target, this)
      } else if (each.operator !== '<&') {
        // `2>&1` and `>&-` name no file.
        const isFile = ({ text }: Argument) => each.operator !== '>&' || !/^(?:\d+|-)$/.test(text!)
        for (const target of targetsOf(this.place, values.filter(isFile))) {
          this.effects.writes.push(target.kind === 'tree' ? { ...target, kind: 'file' } : target)
        }
      }
    }
    return input
  }
}

const isWord = (each: Word | Assignment | undefined): each is Word => each?.type === 'Word'
const targetOf = (each: Redirection) => (each.type === 'HereDoc' ? undefined : each.target)

function appended(before: Argument, more: Argument): Argument {
  if (before.text !== undefined && more.text !== undefined) {
    return { text: before.text + more.text, glob: false }
  }
  return perhaps(textsOf([before, more]))
}
