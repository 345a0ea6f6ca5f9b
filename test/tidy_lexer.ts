/**
 * Tells code from comments, strings, templates and regular expressions, so that a rule about code
 * is not alarmed by prose, nor one about words by code. No parser: the masks keep every character
 * where it was, so that a match in a mask is a place in the file.
 */

export interface Literal {
  /** Where it begins, its opening quote included. */
  start: number
  end: number
  /** What it says; `${}` stands for each interpolated expression. */
  text: string
  interpolates: boolean
}

export interface Masks {
  /** Code only: what quotes and comments enclose is blank, the quotes themselves stay. */
  code: string
  /** Text of strings and templates only. */
  strings: string
  /** Comments only. */
  comments: string
  literals: Literal[]
}

type Kind = 'code' | 'string' | 'comment' | 'regex'

const REGEX_AFTER = /[=(,:;!&|?{}[+\-*%<>~^]$/
const REGEX_AFTER_WORD = /\b(?:return|typeof|case|in|of|do|else|void|yield|await|delete|throw)$/

class Lexer {
  private readonly kinds: Kind[]
  private readonly literals: Literal[] = []
  private at = 0

  constructor(private readonly source: string) {
    this.kinds = Array<Kind>(source.length).fill('code')
  }

  run(): Masks {
    this.code(undefined)
    return {
      code: this.mask('code'),
      strings: this.mask('string'),
      comments: this.mask('comment'),
      literals: this.literals.toSorted((a, b) => a.start - b.start),
    }
  }

  private mask(kind: Kind): string {
    let text = ''
    for (let i = 0; i < this.source.length; i += 1) {
      const char = this.source[i]!
      text += char === '\n' || this.kinds[i] === kind ? char : ' '
    }
    return text
  }

  /** Reads code up to the end of the file, or to the `}` that closes an interpolation. */
  private code(closing: '}' | undefined): void {
    let depth = 0
    while (this.at < this.source.length) {
      const char = this.source[this.at]!
      const pair = this.source.slice(this.at, this.at + 2)
      if (pair === '//') this.skipTo('\n', 0, 'comment')
      else if (pair === '/*') this.skipTo('*/', 2, 'comment')
      else if (char === "'" || char === '"') this.quoted(char)
      else if (char === '`') this.template()
      else if (char === '/' && this.startsRegex()) this.regex()
      else {
        if (char === '{') depth += 1
        if (char === '}' && depth === 0 && closing) return
        if (char === '}') depth -= 1
        this.at += 1
      }
    }
  }

  private skipTo(end: string, include: number, kind: Kind): void {
    const found = this.source.indexOf(end, this.at + 2)
    const stop = found < 0 ? this.source.length : found + include
    this.kinds.fill(kind, this.at, stop)
    this.at = stop
  }

  private quoted(quote: string): void {
    const start = this.at
    this.at += 1
    while (this.at < this.source.length && this.source[this.at] !== quote) {
      if (this.source[this.at] === '\n') break
      this.at += this.source[this.at] === '\\' ? 2 : 1
    }
    this.kinds.fill('string', start + 1, this.at)
    const text = this.source.slice(start + 1, this.at)
    this.at += 1
    this.literals.push({ start, end: this.at, text, interpolates: false })
  }

  private template(): void {
    const start = this.at
    let text = ''
    let from = (this.at += 1)
    const keep = () => {
      this.kinds.fill('string', from, this.at)
      text += this.source.slice(from, this.at)
    }
    while (this.at < this.source.length && this.source[this.at] !== '`') {
      if (this.source.startsWith('${', this.at)) {
        keep()
        text += '${}'
        this.at += 2
        this.code('}')
        from = this.at += 1
      } else {
        this.at += this.source[this.at] === '\\' ? 2 : 1
      }
    }
    keep()
    this.at += 1
    this.literals.push({ start, end: this.at, text, interpolates: text.includes('${}') })
  }

  /** A slash divides behind a value and opens a regular expression anywhere else. */
  private startsRegex(): boolean {
    const before = this.source.slice(Math.max(0, this.at - 40), this.at).trimEnd()
    return before === '' || REGEX_AFTER.test(before) || REGEX_AFTER_WORD.test(before)
  }

  private regex(): void {
    const start = this.at
    let inClass = false
    this.at += 1
    while (this.at < this.source.length && this.source[this.at] !== '\n') {
      const char = this.source[this.at]!
      if (char === '[') inClass = true
      if (char === ']') inClass = false
      if (char === '/' && !inClass) break
      this.at += char === '\\' ? 2 : 1
    }
    this.at += 1
    this.kinds.fill('regex', start, this.at)
  }
}

export function masksOf(source: string): Masks {
  return new Lexer(source).run()
}
