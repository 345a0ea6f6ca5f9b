/** Some text in one style: names of classes. */
export interface StyledText {
  text: string
  style: string
}

const COLUMNS_MAX = 10_000
/** A sequence that does not end for so long is none. */
const SEQUENCE_MAX = 200
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex -- this is what a terminal is told with
  /\u001B(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[@-Z\\^_])/y
// oxlint-disable-next-line no-control-regex -- all that moves the cursor
const CONTROL = /[\u0000-\u001F\u007F]/g

/**
 * What a command printed, as a terminal shows it: a carriage return writes over the line, colours
 * are colours, and what was erased is gone. Of the cursor, only its place in the line is known: who
 * writes into a pipe does not go back to other lines.
 */
export class Terminal {
  private readonly done: StyledText[][] = []
  private chars: string[] = []
  private styles: string[] = []
  private column = 0
  private style = ''
  private rest = ''

  get length(): number {
    return this.done.length + 1
  }

  line(i: number): StyledText[] {
    return this.done[i] ?? this.pieces()
  }

  text(i: number): string {
    return this.line(i)
      .map(({ text }) => text)
      .join('')
  }

  write(more: string): void {
    const text = this.rest + more
    this.rest = ''
    for (let at = 0; at < text.length;) {
      CONTROL.lastIndex = at
      const next = CONTROL.exec(text)?.index ?? text.length
      this.put(text.slice(at, next))
      at = next + 1
      if (text[next] !== '\u001B') {
        this.control(text[next])
        continue
      }
      SEQUENCE.lastIndex = next
      const found = SEQUENCE.exec(text)
      // The rest of it comes with the next piece.
      if (!found && text.length - next < SEQUENCE_MAX) return void (this.rest = text.slice(next))
      if (!found) continue
      at = SEQUENCE.lastIndex
      if (found[2] === 'm') this.style = styled(this.style, found[1]!)
      if (found[2] === 'K') this.erase(Number(found[1]))
    }
  }

  private put(text: string): void {
    for (const char of text) {
      if (this.column >= COLUMNS_MAX) return
      while (this.chars.length < this.column) this.styles[this.chars.push(' ') - 1] = ''
      this.chars[this.column] = char
      this.styles[this.column] = this.style
      this.column += 1
    }
  }

  private control(char: string | undefined): void {
    if (char === '\r') this.column = 0
    else if (char === '\b') this.column = Math.max(0, this.column - 1)
    else if (char === '\t') this.put(' '.repeat(8 - (this.column % 8)))
    else if (char === '\n') {
      this.done.push(this.pieces())
      ;[this.chars, this.styles, this.column] = [[], [], 0]
    }
  }

  private erase(how: number): void {
    if (how === 1) this.chars.fill(' ', 0, this.column + 1)
    else this.chars.length = how === 2 ? 0 : Math.min(this.chars.length, this.column)
    this.styles.length = this.chars.length
  }

  private pieces(): StyledText[] {
    const pieces: StyledText[] = []
    for (const [i, char] of this.chars.entries()) {
      const last = pieces.at(-1)
      if (last?.style === this.styles[i]) last!.text += char
      else pieces.push({ text: char, style: this.styles[i]! })
    }
    return pieces
  }
}

const MARKS: Record<number, string> = { 1: 'is-bold', 2: 'is-faint' }

/** The style after `ESC [ … m`; of colours, those that the theme has. */
function styled(before: string, said: string): string {
  const codes = said.split(/[;:]/).map(Number)
  const marks = new Set(before.split(' ').filter(Boolean))
  const drop = (kind: RegExp) => {
    for (const mark of marks) if (kind.test(mark)) marks.delete(mark)
  }
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i]!
    const tens = Math.floor(code / 10)
    const kind = tens === 4 || tens === 10 ? 'bg' : 'fg'
    if (code === 0) marks.clear()
    else if (MARKS[code]) marks.add(MARKS[code])
    else if (code === 22) drop(/^is-(?:bold|faint)/)
    else if (tens === 3 || tens === 4 || tens === 9 || tens === 10) {
      drop(kind === 'fg' ? /^fg/ : /^bg/)
      // One of all colours: how it is said takes three more numbers, or one.
      if (code % 10 === 8) i += codes[i + 1] === 2 ? 4 : 2
      else if (code % 10 < 8) marks.add(`${kind}${code % 10}`)
    }
  }
  return [...marks].join(' ')
}

/** The last lines that are not empty, as text. */
export function lastLinesOf(text: string, n: number): string[] {
  const terminal = new Terminal()
  terminal.write(text)
  const lines = Array.from({ length: terminal.length }, (_, i) => terminal.text(i))
  return lines.filter((line) => line.trim() !== '').slice(-n)
}
