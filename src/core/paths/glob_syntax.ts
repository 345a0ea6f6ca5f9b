import { Refusal } from '../refusal.ts'

/** From one code point to another, both included. */
type Range = [from: number, to: number]

/** What stands for characters of a name: one of `ranges`, or any number of any (`*`). */
export interface Piece {
  many: boolean
  ranges: Range[]
}

export type Item =
  | { kind: 'piece'; piece: Piece }
  | { kind: 'folders' }
  | { kind: 'slash' }
  | { kind: 'either'; ways: Item[][] }

const SLASH = 0x2f
const LAST = 0x10ffff

/** All that a name may consist of: no slash, no NUL, and no half of a surrogate pair. */
const ANY: Range[] = [
  [1, SLASH - 1],
  [SLASH + 1, 0xd7ff],
  [0xe000, LAST],
]

const STAR: Piece = { many: true, ranges: [] }

/** Whether a glob stands for more than one path, told without reading it. */
export const isPattern = (glob: string) => !/^(?:[^\\*?[{]|\\.)*[^/]$/su.test(glob)

/** `invalid`, with where and why. */
export function badGlob(text: string, position: number, why: string): Refusal {
  return new Refusal('invalid', `${text} is not a glob: ${why} (at position ${position + 1})`, {
    next: String.raw`Known: * ? ** [a-z] [!a] {a,b}; \ before a character that means itself.`,
    details: { glob: text, position },
  })
}

/** Reads the text of a glob, braces and all. Refuses with `invalid` and the position. */
export function parseItems(text: string): Item[] {
  return new Reader(text).all()
}

class Reader {
  private at = 0

  constructor(private readonly text: string) {}

  all(): Item[] {
    if (/\p{Surrogate}/u.test(this.text)) throw this.bad(0, 'half of a character is missing')
    if (this.text.startsWith('!')) throw this.bad(0, 'what is to be left out cannot be said')
    const items = this.sequence(false)
    if (this.at < this.text.length) throw this.bad(this.at, 'a } without a {')
    return items
  }

  private bad(position: number, why: string): Refusal {
    return badGlob(this.text, position, why)
  }

  /** Up to the end, or to the comma or brace that ends one way. */
  private sequence(inBraces: boolean): Item[] {
    const items: Item[] = []
    while (this.at < this.text.length) {
      const next = this.text[this.at]!
      if (next === '}' || (inBraces && next === ',')) break
      items.push(this.item(next))
    }
    return items
  }

  private item(next: string): Item {
    const from = this.at
    if ('?*+@!'.includes(next) && this.text[from + 1] === '(') {
      throw this.bad(from, `${next}( is not known`)
    }
    if (next === '/') return this.take(1, { kind: 'slash' })
    if (next === '*') return this.stars()
    if (next === '?') return this.take(1, pieceOf(ANY))
    if (next === '[') return this.charClass()
    return next === '{' ? this.braces() : meaningItself(this.character())
  }

  private take(length: number, item: Item): Item {
    this.at += length
    return item
  }

  private stars(): Item {
    const [stars] = /^\*+/.exec(this.text.slice(this.at))!
    if (stars.length > 2) throw this.bad(this.at, 'there are at most two * in a row')
    return this.take(
      stars.length,
      stars.length === 2 ? { kind: 'folders' } : { kind: 'piece', piece: STAR },
    )
  }

  /** One character that means itself, escaped or not. */
  private character(): Range {
    const from = this.at
    if (this.text[from] === '\\') this.at += 1
    const point = this.text.codePointAt(this.at)
    if (point === undefined) throw this.bad(from, String.raw`a \ with nothing behind it`)
    if (point === SLASH) throw this.bad(from, 'a / cannot be part of a name')
    this.at += point > 0xffff ? 2 : 1
    return [point, point]
  }

  private charClass(): Item {
    const from = this.at
    this.at += 1
    const negated = '!^'.includes(this.text[this.at] ?? ' ')
    if (negated) this.at += 1
    const ranges: Range[] = []
    // A ] that comes first means itself, as everywhere.
    while (ranges.length === 0 || this.text[this.at] !== ']') {
      if (this.at >= this.text.length) throw this.bad(from, 'a [ without a ]')
      if (/^\[[:.=]/.test(this.text.slice(this.at))) {
        throw this.bad(this.at, 'named classes are not known')
      }
      ranges.push(this.range())
    }
    this.at += 1
    const found = within(negated ? outside(ranges) : ranges)
    if (found.length === 0) throw this.bad(from, 'no character is in this class')
    return pieceOf(found)
  }

  private range(): Range {
    const from = this.at
    const [low] = this.character()
    const dash = this.text[this.at] === '-' && this.text[this.at + 1] !== ']'
    if (!dash) return [low, low]
    this.at += 1
    const [high] = this.character()
    if (high < low) throw this.bad(from, 'this range runs backwards')
    return [low, high]
  }

  private braces(): Item {
    const from = this.at
    const ways: Item[][] = []
    do {
      this.at += 1
      ways.push(this.sequence(true))
    } while (this.text[this.at] === ',')
    if (this.text[this.at] !== '}') throw this.bad(from, 'a { without a }')
    if (ways.length === 1) throw this.bad(from, 'braces need a comma; {1..3} is not known')
    return this.take(1, { kind: 'either', ways })
  }
}

const ASCII = Array.from({ length: 128 }, (_, point): Item => pieceOf([[point, point]]))

/** Most characters of most globs: they are kept, so each is made once. */
const meaningItself = (range: Range): Item => ASCII[range[0]] ?? pieceOf([range])

function pieceOf(ranges: Range[]): Item {
  return { kind: 'piece', piece: { many: false, ranges } }
}

/** All code points that are in none of `ranges`. */
function outside(ranges: Range[]): Range[] {
  const gaps: Range[] = []
  let from = 0
  for (const [low, high] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (low > from) gaps.push([from, low - 1])
    from = Math.max(from, high + 1)
  }
  return from > LAST ? gaps : [...gaps, [from, LAST]]
}

/** The part of `ranges` that a name may consist of. */
function within(ranges: Range[]): Range[] {
  return ranges.flatMap(([low, high]) =>
    ANY.map(([from, to]): Range => [Math.max(low, from), Math.min(high, to)]).filter(
      ([from, to]) => from <= to,
    ),
  )
}
