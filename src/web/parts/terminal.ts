/** Some text in one style: names of classes, and perhaps a colour of its own (`#rrggbb`). */
export interface StyledText {
  text: string
  style: string
}

interface Row {
  chars: string[]
  styles: string[]
}

/** A cursor goes no further up than this: lines before that are kept as they are. */
const REACH = 50
const COLUMNS_MAX = 10_000
const SEQUENCE_MAX = 200
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex -- this is what a terminal is told with
  /\u001B(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[@-Z\\^_])/y
// oxlint-disable-next-line no-control-regex -- all that moves the cursor
const CONTROL = /[\u0000-\u001F\u007F]/g

const empty = (): Row => ({ chars: [], styles: [] })

/**
 * What a command printed, as a terminal shows it: a carriage return writes over the line, colours
 * are colours, and what was erased is gone.
 */
export class Terminal {
  private readonly done: StyledText[][] = []
  private live: Row[] = [empty()]
  private row = 0
  private column = 0
  private style = ''
  private rest = ''

  get length(): number {
    return this.done.length + this.live.length
  }

  line(i: number): StyledText[] {
    const row = this.live[i - this.done.length]
    return row ? piecesOf(row) : (this.done[i] ?? [])
  }

  text(i: number): string {
    const row = this.live[i - this.done.length]
    if (row) return row.chars.join('')
    return (this.done[i] ?? []).map(({ text }) => text).join('')
  }

  write(more: string): void {
    const text = this.rest + more
    this.rest = ''
    for (let at = 0; at < text.length;) {
      CONTROL.lastIndex = at
      const next = CONTROL.exec(text)?.index ?? text.length
      if (next > at) this.put(text.slice(at, next))
      at = next
      if (at === text.length) return
      if (text[at] !== '\u001B') {
        this.control(text[at]!)
        at += 1
        continue
      }
      SEQUENCE.lastIndex = at
      const found = SEQUENCE.exec(text)
      // The rest of it comes with the next piece.
      if (!found && text.length - at < SEQUENCE_MAX) return void (this.rest = text.slice(at))
      if (found?.[2]) this.obey(found[1]!, found[2])
      at = found ? SEQUENCE.lastIndex : at + 1
    }
  }

  private put(text: string): void {
    const { chars, styles } = this.live[this.row]!
    for (const char of text) {
      if (this.column >= COLUMNS_MAX) return
      while (chars.length < this.column) styles[chars.push(' ') - 1] = ''
      chars[this.column] = char
      styles[this.column] = this.style
      this.column += 1
    }
  }

  private control(char: string): void {
    if (char === '\n') this.down()
    else if (char === '\r') this.column = 0
    else if (char === '\b') this.column = Math.max(0, this.column - 1)
    else if (char === '\t') this.put(' '.repeat(8 - (this.column % 8)))
  }

  private down(): void {
    this.column = 0
    this.row += 1
    if (this.row < this.live.length) return
    this.live.push(empty())
    while (this.live.length > REACH) {
      this.done.push(piecesOf(this.live.shift()!))
      this.row -= 1
    }
  }

  private obey(said: string, verb: string): void {
    const n = Math.max(1, Number(said) || 1)
    if (verb === 'm') this.style = styled(this.style, said)
    else if (verb === 'K') this.erase(Number(said) || 0)
    else if (verb === 'A' || verb === 'F') this.row = Math.max(0, this.row - n)
    else if (verb === 'B' || verb === 'E') this.row = Math.min(this.live.length - 1, this.row + n)
    else if (verb === 'C') this.column = Math.min(COLUMNS_MAX, this.column + n)
    else if (verb === 'D') this.column = Math.max(0, this.column - n)
    else if (verb === 'G') this.column = Math.min(COLUMNS_MAX, n - 1)
    if (verb === 'E' || verb === 'F') this.column = 0
  }

  private erase(how: number): void {
    const row = this.live[this.row]!
    if (how === 0) row.chars.length = row.styles.length = Math.min(row.chars.length, this.column)
    else if (how === 2) this.live[this.row] = empty()
    else row.chars.fill(' ', 0, this.column + 1)
  }
}

function piecesOf({ chars, styles }: Row): StyledText[] {
  const pieces: StyledText[] = []
  for (const [i, char] of chars.entries()) {
    const last = pieces.at(-1)
    if (last?.style === styles[i]) last!.text += char
    else pieces.push({ text: char, style: styles[i]! })
  }
  return pieces
}

const MARKS: Record<number, string> = { 1: 'is-bold', 2: 'is-faint', 3: 'is-italic', 4: 'is-under' }

/** The style after `ESC [ … m`. */
function styled(before: string, said: string): string {
  const codes = said.split(/[;:]/).map(Number)
  const marks = new Set(before.split(' ').filter(Boolean))
  const drop = (kind: RegExp) => {
    for (const mark of marks) if (kind.test(mark)) marks.delete(mark)
  }
  const colour = (kind: 'fg' | 'bg', name: string) => {
    drop(kind === 'fg' ? /^(?:fg|#)/ : /^bg/)
    // A background of any colour might hide the text: those that the theme does not have are left.
    if (kind === 'fg' || !name.startsWith('#')) marks.add(name.startsWith('#') ? name : kind + name)
  }
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i]!
    const kind = code % 100 < 40 ? 'fg' : 'bg'
    if (code === 0) marks.clear()
    else if (MARKS[code]) marks.add(MARKS[code])
    else if (code === 22) drop(/^is-(?:bold|faint)/)
    else if (code === 23 || code === 24) marks.delete(MARKS[code - 20]!)
    else if (code === 38 || code === 48) {
      const [name, used] = ownColour(codes.slice(i + 1))
      colour(code === 38 ? 'fg' : 'bg', name)
      i += used
    } else if (code === 39 || code === 49) drop(code === 39 ? /^(?:fg|#)/ : /^bg/)
    else if (code >= 30 && code < 48) colour(kind, String(code % 10))
    else if (code >= 90 && code < 108) colour(code < 98 ? 'fg' : 'bg', String(code % 10))
  }
  return [...marks].join(' ')
}

/** One of 256 or of all colours, and how many numbers it took to say which. */
function ownColour([way, a = 0, g = 0, b = 0]: number[]): [string, number] {
  if (way === 2) return [hexOf(a, g, b), 4]
  if (a < 16) return [String(a % 8), 2]
  const step = (n: number) => (n === 0 ? 0 : 55 + 40 * n)
  const cube = a - 16
  if (a >= 232) return [hexOf(...grey(8 + 10 * (a - 232))), 2]
  return [hexOf(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6)), 2]
}

const grey = (n: number): [number, number, number] => [n, n, n]
const hexOf = (...rgb: number[]) =>
  `#${rgb
    .map((n) =>
      Math.min(255, n || 0)
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`

/** The last lines that are not empty, as text. */
export function lastLinesOf(text: string, n: number): string[] {
  const terminal = new Terminal()
  terminal.write(text)
  const lines = Array.from({ length: terminal.length }, (_, i) => terminal.text(i))
  return lines.filter((line) => line.trim() !== '').slice(-n)
}
