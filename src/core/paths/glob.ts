import { badGlob, type Item, parseItems, type Piece } from './glob_syntax.ts'
import { Refusal } from '../refusal.ts'

/**
 * Path globs of reservations. A path is a list of names, relative to a checkout; a glob is a set of
 * such paths:
 *
 * - `*` any characters of one name, a leading dot included; `?` one character;
 * - `**` alone between slashes any number of names, none included: `src/**` has `src` itself too;
 * - `[a-z]`, `[!a-z]` one character of a class; `{a,b}` either, nested if need be;
 * - `\` takes the meaning of the next character away; a slash at the end means `/**`.
 *
 * All else that other programs give a meaning to is refused rather than taken for a name.
 */
export interface Glob {
  /** The text in one spelling. */
  text: string
  /** One list of segments for each way that its braces can be read. */
  ways: Segment[][]
  /** Leading folders without magic that all its paths share, each with a slash behind it. */
  base: string
}

/** One name, or any number of names (`**`). */
interface Segment {
  many: boolean
  pieces: Piece[]
}

/** Every character of one glob may have to be compared with every one of another. */
export const GLOB_MAX = 1024
const WAYS_MAX = 64
const EXPANDED_MAX = 2048

/** Part of a key in indexes, so it has to be short. A shorter one finds more than it must. */
const BASE_MAX = 400

const FOLDERS: Segment = { many: true, pieces: [] }

/** Reads a glob, or refuses with `invalid` and the position; `too_large` beyond the bounds. */
export function parseGlob(given: string): Glob {
  if (given.length > GLOB_MAX) throw tooLarge(given, `${GLOB_MAX} characters`)
  const text = spellGlob(given)
  const ways = expand(text, parseItems(text)).map((items) => segmentsOf(text, items))
  return { text, ways, base: commonBase(ways) }
}

/** The glob of one path and no other; with a slash at the end, of all that is under it. */
export function literalGlob(path: string): string {
  return path.replaceAll(/[\\*?[\]{}]|^!|[+@!](?=\()/g, String.raw`\$&`)
}

/** Whether there is a path that is in both. Exact: it is decided, not guessed. */
export function overlaps(a: Glob, b: Glob): boolean {
  if (!a.base.startsWith(b.base) && !b.base.startsWith(a.base)) return false
  return a.ways.some((one) => b.ways.some((other) => walk(one, other, segmentsMeet)))
}

/**
 * Whether two lists can be walked to their ends together: a `many` stays while the other goes on,
 * or is passed for nothing; two others pass each other where they meet. This is the product of two
 * automata, whose states are places in the lists.
 */
function walk<T extends { many: boolean }>(a: T[], b: T[], meet: (a: T, b: T) => boolean): boolean {
  let here = new Uint8Array(b.length + 1)
  here[0] = 1
  for (const one of a) {
    const next = new Uint8Array(b.length + 1)
    let isAlive = false
    for (let j = 0; j <= b.length; j += 1) {
      if (here[j] === 0) continue
      isAlive = true
      const other = b[j]
      if (one.many || other?.many) {
        next[j] = 1
        if (other) here[j + 1] = 1
      } else if (other && meet(one, other)) next[j + 1] = 1
    }
    if (!isAlive) return false
    here = next
  }
  // What is left of `b` must be able to stand for nothing.
  const furthest = here.lastIndexOf(1)
  return furthest !== -1 && b.slice(furthest).every(({ many }) => many)
}

const segmentsMeet = (a: Segment, b: Segment) => walk(a.pieces, b.pieces, piecesMeet)

function piecesMeet(a: Piece, b: Piece): boolean {
  return a.ranges.some(([from, to]) => b.ranges.some(([low, high]) => from <= high && low <= to))
}

/** `./src//a/` → `src/a/**`: what says the same is written the same. */
export function spellGlob(given: string): string {
  if (given === '') throw badGlob(given, 0, 'it is empty')
  if (given.startsWith('/')) throw badGlob(given, 0, 'a path begins in its checkout, not at /')
  const parts = given.split('/')
  const kept = parts.filter((part) => part !== '' && part !== '.')
  const up = kept.indexOf('..')
  if (up !== -1) throw badGlob(given, given.indexOf('..'), 'a path may not contain ..')
  const isFolder = parts.at(-1) === '' || kept.length === 0
  return [...kept, ...(isFolder && kept.at(-1) !== '**' ? ['**'] : [])].join('/')
}

/** Every way to read the braces. */
function expand(text: string, items: Item[]): Item[][] {
  let ways: Item[][] = [[]]
  for (const item of items) {
    const choices =
      item.kind === 'either' ? item.ways.flatMap((way) => expand(text, way)) : [[item]]
    if (ways.length * choices.length > WAYS_MAX) throw tooLarge(text, `${WAYS_MAX} choices`)
    ways = ways.flatMap((way) => choices.map((choice) => way.concat(choice)))
  }
  const size = ways.reduce((sum, way) => sum + way.length, 0)
  if (size > EXPANDED_MAX) throw tooLarge(text, `${EXPANDED_MAX} characters when read out`)
  return ways
}

function segmentsOf(text: string, items: Item[]): Segment[] {
  const segments: Segment[] = []
  let name: Item[] = []
  const finish = () => {
    if (name.length > 0) segments.push(segmentOf(text, name))
    name = []
  }
  for (const item of items) {
    if (item.kind === 'slash') finish()
    else name.push(item)
  }
  finish()
  if (segments.length === 0) throw badGlob(text, 0, 'one of its choices is no path')
  if (items.at(-1)?.kind === 'slash') segments.push(FOLDERS)
  return segments
}

function segmentOf(text: string, items: Item[]): Segment {
  if (items.length === 1 && items[0]!.kind === 'folders') return FOLDERS
  const pieces = items.map((item) => {
    if (item.kind === 'piece') return item.piece
    throw badGlob(text, text.indexOf('**'), '** stands alone between slashes')
  })
  const name = nameOf({ many: false, pieces })
  if (name === '.' || name === '..') throw badGlob(text, text.indexOf(name), `no file is ${name}`)
  return { many: false, pieces }
}

/** The one name that a segment stands for, if it has no magic. */
function nameOf({ many, pieces }: Segment): string | undefined {
  const points = pieces.map((piece) => pointOf(piece))
  if (many || points.includes(-1)) return undefined
  return String.fromCodePoint(...points)
}

const pointOf = ({ many, ranges: [first, ...rest] }: Piece) =>
  !many && first && rest.length === 0 && first[0] === first[1] ? first[0] : -1

function commonBase(ways: Segment[][]): string {
  let base = ''
  for (let i = 0; ; i += 1) {
    const [name, ...others] = ways.map((way) => nameOf(way[i] ?? FOLDERS))
    if (name === undefined || others.some((other) => other !== name)) return base
    const longer = `${base}${asciiOf(name)}/`
    if (longer.length > BASE_MAX) return base
    base = longer
  }
}

/** The same order in every store: those that compare bytes, and those that compare characters. */
export function asciiOf(text: string): string {
  return text.replaceAll(/[^ -$&-~]/g, (each) => {
    return `%${each.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

function tooLarge(text: string, bound: string): Refusal {
  return new Refusal('too_large', `This glob is too large: ${text.slice(0, 80)}…`, {
    next: `A glob may have at most ${bound}: name fewer things, or a folder.`,
  })
}
