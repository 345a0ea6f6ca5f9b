import { bareText, literalText, type WordPart, type ShellToken } from './tokens.ts'

const SPACE = /[ \t]/
const WORD_END = /[\s;&|<>()]/
const OPERATORS = [';;&', ';&', ';;', '&&', '||', '|&', '|', '&', ';', '(', ')']
const REDIRECTS = ['&>>', '&>', '<<<', '<<-', '<<', '<>', '<&', '>>', '>|', '>&', '<', '>']
/** Scripts inside scripts: deeper ones are not looked at. */
const DEPTH_MAX = 20

/** A script as the shell splits it. Never throws: what is not closed ends with the text. */
export function tokensOf(text: string): ShellToken[] {
  return new Lexer(text, 0, 0).script()
}

class Lexer {
  private readonly tokens: ShellToken[] = []
  private readonly heredocs: { parts: WordPart[]; end: string; tabs: boolean; quoted: boolean }[] =
    []
  private parts: WordPart[] = []
  private inWord = false
  private cases = 0

  constructor(
    private readonly text: string,
    public at: number,
    private readonly depth: number,
  ) {}

  /** Reads to the end, or to the parenthesis that closes the substitution which it stands in. */
  script(): ShellToken[] {
    let open = 0
    while (this.at < this.text.length) {
      const op = this.inWord ? undefined : this.operator()
      if (op === '(') open += 1
      if (op === ')') {
        if (open === 0 && this.cases > 0) this.tokens.push({ kind: 'op', op: 'pattern' })
        else if (open === 0 && this.depth > 0) break
        else this.tokens.push({ kind: 'op', op })
        open = Math.max(0, open - 1)
      } else if (op !== undefined) this.tokens.push({ kind: 'op', op })
      else this.step()
    }
    this.endWord()
    this.readHeredocs()
    return this.tokens
  }

  private get char(): string {
    return this.text[this.at] ?? ''
  }

  private starts(what: string): boolean {
    return this.text.startsWith(what, this.at)
  }

  private operator(): string | undefined {
    if (this.starts('((') && this.isCommandStart() && this.skipTo('))')) return undefined
    const op = OPERATORS.find((each) => this.starts(each))
    // `&>` sends both outputs to a file, and is no operator.
    if (op === undefined || (op === '&' && this.text[this.at + 1] === '>')) return undefined
    this.at += op.length
    return op
  }

  private isCommandStart(): boolean {
    const last = this.tokens.at(-1)
    return !last || last.kind === 'op' || /^(?:if|then|else|do|while|until|!)$/.test(name(last))
  }

  private skipTo(end: string): boolean {
    const found = this.text.indexOf(end, this.at)
    if (found === -1) return false
    this.at = found + end.length
    return true
  }

  private step(): void {
    const { char } = this
    if (char === '\n') return this.endLine()
    if (SPACE.test(char)) {
      this.endWord()
      this.at += 1
    } else if (char === '#' && !this.inWord) {
      const end = this.text.indexOf('\n', this.at)
      this.at = end === -1 ? this.text.length : end
    } else if (this.starts('<(') || this.starts('>(')) this.substitution(2)
    else if (char === '(' && this.isArray()) this.skipArray()
    else if (this.redirect()) return
    else if (WORD_END.test(char)) this.endWord()
    else this.wordStep()
  }

  /** `name=(`: a list follows, not a group of commands. */
  private isArray(): boolean {
    const last = this.inWord ? this.parts.at(-1) : undefined
    return last?.kind === 'text' && !last.quoted && last.text.endsWith('=')
  }

  private skipArray(): void {
    this.parts.push({ kind: 'unknown' })
    if (!this.skipTo(')')) this.at = this.text.length
  }

  private endLine(): void {
    this.endWord()
    this.at += 1
    this.tokens.push({ kind: 'op', op: ';' })
    this.readHeredocs()
  }

  private endWord(): void {
    if (!this.inWord) return
    const token: ShellToken = { kind: 'word', parts: this.parts }
    const isTest = bareText(token) === '[[' && this.isCommandStart()
    const word = name(token)
    if (word === 'case' && this.isCommandStart()) this.cases += 1
    if (word === 'esac') this.cases = Math.max(0, this.cases - 1)
    this.tokens.push(token)
    this.parts = []
    this.inWord = false
    // Between [[ and ]] a comparison looks like a redirection.
    if (isTest) this.skipTo(' ]]')
  }

  private redirect(): boolean {
    const op = REDIRECTS.find((each) => this.starts(each))
    if (op === undefined) return false
    // `2>file`: the digits in front belong to it.
    if (this.inWord && /^\d+$/.test(literalText(this.parts) ?? '')) {
      this.parts = []
      this.inWord = false
    }
    this.endWord()
    this.at += op.length
    this.tokens.push({ kind: 'redirect', op: op === '<<-' ? '<<' : op })
    if (op === '<<' || op === '<<-') this.heredoc(op === '<<-')
    return true
  }

  /** The body comes after this line; its place is here. */
  private heredoc(tabs: boolean): void {
    while (SPACE.test(this.char)) this.at += 1
    while (this.at < this.text.length && !WORD_END.test(this.char)) this.wordStep()
    const quoted = this.parts.some((part) => part.kind === 'text' && part.quoted)
    const end = literalText(this.parts) ?? ''
    const parts: WordPart[] = []
    this.heredocs.push({ parts, end, tabs, quoted })
    this.tokens.push({ kind: 'word', parts })
    this.parts = []
    this.inWord = false
  }

  private readHeredocs(): void {
    for (const { parts, end, tabs, quoted } of this.heredocs.splice(0)) {
      const lines: string[] = []
      while (this.at < this.text.length) {
        const stop = this.text.indexOf('\n', this.at)
        const line = this.text.slice(this.at, stop === -1 ? undefined : stop)
        const bare = tabs ? line.replace(/^\t+/, '') : line
        // `$(cat <<EOF … EOF)` may be closed on the line that ends the body.
        const isEnd = bare === end || (this.depth > 0 && bare.startsWith(`${end})`))
        this.at = isEnd && bare !== end ? this.at + line.indexOf(')') : this.at + line.length + 1
        if (isEnd) break
        lines.push(`${bare}\n`)
      }
      const body = lines.join('')
      parts.push({ kind: 'text', text: body, quoted: true })
      if (!quoted) this.scriptsIn(body)
    }
    this.at = Math.min(this.at, this.text.length)
  }

  /** An unquoted body is expanded: commands in it are run. */
  private scriptsIn(body: string): void {
    const inner = new Lexer(body, 0, this.depth + 1)
    inner.doubleQuoted(undefined)
    this.tokens.push(...inner.tokens.filter((token) => token.kind === 'script'))
  }

  private wordStep(): void {
    this.inWord = true
    const { char } = this
    if (char === '\\') {
      if (this.text[this.at + 1] === '\n') this.inWord = this.parts.length > 0
      else this.push(this.text[this.at + 1] ?? '', true)
      this.at += 2
    } else if (char === "'") {
      const end = this.text.indexOf("'", this.at + 1)
      const stop = end === -1 ? this.text.length : end
      this.push(this.text.slice(this.at + 1, stop), true)
      this.at = stop + 1
    } else if (this.starts("$'")) {
      const { text, end } = ansiText(this.text, this.at + 2)
      this.push(text, true)
      this.at = end
    } else if (char === '"' || this.starts('$"')) {
      this.at += char === '"' ? 1 : 2
      this.push('', true)
      this.doubleQuoted('"')
    } else if (char === '$') this.dollar()
    else if (char === '`') this.backticks()
    else {
      this.push(char, false)
      this.at += 1
    }
  }

  private doubleQuoted(end: string | undefined): void {
    while (this.at < this.text.length && this.char !== end) {
      const { char } = this
      if (char === '\\') {
        const next = this.text[this.at + 1] ?? ''
        if (next !== '\n') this.push(/[$`"\\]/.test(next) ? next : `\\${next}`, true)
        this.at += 2
      } else if (char === '$') this.dollar()
      else if (char === '`') this.backticks()
      else {
        this.push(char, true)
        this.at += 1
      }
    }
    this.at += 1
  }

  private push(text: string, quoted: boolean): void {
    const last = this.parts.at(-1)
    if (last?.kind === 'text' && last.quoted === quoted) last.text += text
    else this.parts.push({ kind: 'text', text, quoted })
  }

  private dollar(): void {
    if (this.starts('$((')) {
      if (!this.skipTo('))')) this.at = this.text.length
      this.parts.push({ kind: 'unknown' })
    } else if (this.starts('$(')) this.substitution(2)
    else if (this.starts('${')) this.braced()
    else {
      const [all, found] = /^\$(\w+|[@*#?$!-])?/.exec(this.text.slice(this.at, this.at + 200))!
      this.at += all.length
      if (found === undefined) this.push('$', false)
      else if (/^[A-Za-z_]/.test(found)) this.parts.push({ kind: 'variable', name: found })
      else this.parts.push({ kind: 'unknown' })
    }
  }

  /** `${name}` is a variable; anything that changes it on the way is unknown. */
  private braced(): void {
    const plain = /^\$\{([A-Za-z_]\w*)\}/.exec(this.text.slice(this.at, this.at + 200))
    if (plain) {
      this.parts.push({ kind: 'variable', name: plain[1]! })
      this.at += plain[0].length
      return
    }
    let open = 0
    for (; this.at < this.text.length; this.at += 1) {
      if (this.char === '\\') this.at += 1
      else if (this.char === '{') open += 1
      else if (this.char === '}' && (open -= 1) === 0) break
    }
    this.at += 1
    this.parts.push({ kind: 'unknown' })
  }

  /** `$(…)`, `<(…)`, `>(…)`: what it prints is unknown, what it does is looked at. */
  private substitution(skip: number): void {
    const inner = new Lexer(this.text, this.at + skip, this.depth + 1)
    this.inWord = true
    this.parts.push({ kind: 'unknown' })
    if (this.depth >= DEPTH_MAX) this.at = this.text.length
    else {
      this.tokens.push({ kind: 'script', tokens: inner.script() })
      this.at = inner.at
    }
  }

  private backticks(): void {
    let inner = ''
    for (this.at += 1; this.at < this.text.length && this.char !== '`'; this.at += 1) {
      if (this.char === '\\' && /[`\\$]/.test(this.text[this.at + 1] ?? '')) this.at += 1
      inner += this.char
    }
    this.at += 1
    this.parts.push({ kind: 'unknown' })
    if (this.depth >= DEPTH_MAX) return
    this.tokens.push({ kind: 'script', tokens: new Lexer(inner, 0, this.depth + 1).script() })
  }
}

const name = (token: ShellToken) => bareText(token) ?? ''

const NAMED: Record<string, string> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\u0007',
  b: '\b',
  e: '\u001b',
  f: '\f',
  v: '\v',
}

const CODE = /^(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3}))/

/** What stands in `$'…'` from `at` on, and where it ends. */
function ansiText(source: string, at: number): { text: string; end: number } {
  let text = ''
  for (; at < source.length && source[at] !== "'"; at += 1) {
    if (source[at] !== '\\') {
      text += source[at]
      continue
    }
    at += 1
    const [code, x, u, long, octal] = CODE.exec(source.slice(at, at + 9)) ?? []
    const hex = x ?? u ?? long
    if (code === undefined) text += NAMED[source[at] ?? ''] ?? source[at] ?? ''
    else {
      const point = Number.parseInt(hex ?? octal!, hex === undefined ? 8 : 16)
      text += point <= 0x10ffff ? String.fromCodePoint(point) : ''
      at += code.length - 1
    }
  }
  return { text, end: at + 1 }
}
