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
  /** One for each way that its braces can be read. */
  ways: Way[]
  /** Leading folders without magic that all its paths share, each with a slash behind it. */
  base: string
  /** How many pieces it has to be compared by, in all its ways. */
  cost: number
}

interface Way {
  segments: Segment[]
  /** No path of it has fewer names; and none has more, if it is `fixed`: it has no `**`. */
  least: number
  fixed: boolean
}

/** One name, or any number of names (`**`). */
interface Segment {
  many: boolean
  pieces: Piece[]
  /** The only name that it stands for, where it has no magic. */
  name: string | undefined
  /** No name that it stands for has fewer characters. */
  least: number
}

/** Every character of one glob may have to be compared with every one of another. */
export const GLOB_MAX = 1024
const WAYS_MAX = 64
const EXPANDED_MAX = 2048

/** Part of a key in indexes, so it has to be short. A shorter one finds more than it must. */
const BASE_MAX = 400

const FOLDERS: Segment = { many: true, pieces: [], name: undefined, least: 0 }

/** Globs read lately, and how many pieces they have: to read one takes longer than to match. */
const lately = new Map<string, Glob>()
let sizeOfLately = 0
const KEPT_MAX = 200_000

/** Reads a glob, or refuses with `invalid` and the position; `too_large` beyond the bounds. */
export function parseGlob(given: string): Glob {
  const known = lately.get(given)
  if (known) return known
  if (given.length > GLOB_MAX) throw tooLarge(given, `${GLOB_MAX} characters`)
  const text = spellGlob(given)
  const ways = expand(text, parseItems(text)).map((items) => wayOf(segmentsOf(text, items)))
  const glob = { text, ways, base: commonBase(ways), cost: costOf(ways) }
  sizeOfLately += glob.cost
  if (sizeOfLately > KEPT_MAX) {
    lately.clear()
    sizeOfLately = glob.cost
  }
  lately.set(given, glob)
  return glob
}

function wayOf(segments: Segment[]): Way {
  const least = segments.filter(({ many }) => !many).length
  return { segments, least, fixed: least === segments.length }
}

const costOf = (ways: Way[]) =>
  ways.flatMap(({ segments }) => segments).reduce((sum, { pieces }) => sum + pieces.length + 1, 0)

/** What one ask may spend on comparing globs; see `overlaps`. */
export interface Steps {
  left: number
}

/** Below 100 ms: nobody else is answered meanwhile. */
const STEPS_MAX = 2_000_000
/** What it costs, in steps, to see at once that two globs have nothing in common. */
const STEPS_EACH = 20

export const globSteps = (): Steps => ({ left: STEPS_MAX })

/** The glob of one path and no other; with a slash at the end, of all that is under it. */
export function literalGlob(path: string): string {
  return path.replaceAll(/[\\*?[\]{}]|^!|[+@!](?=\()/g, String.raw`\$&`)
}

/**
 * Whether there is a path that is in both. Exact: it is decided, not guessed. A path is compared in
 * about as many steps as it has characters; two globs with magic in as many as the one has pieces,
 * times those of the other. Refuses with `too_large` when `steps` are used up.
 */
export function overlaps(a: Glob, b: Glob, steps: Steps = globSteps()): boolean {
  spend(steps, STEPS_EACH)
  if (!a.base.startsWith(b.base) && !b.base.startsWith(a.base)) return false
  for (const one of a.ways) {
    for (const other of b.ways) {
      if (!isAsDeep(one, other)) continue
      if (walk(one.segments, other.segments, segmentsMeet, steps)) return true
    }
  }
  return false
}

/** Whether a path can have as many names as both want. */
function isAsDeep(a: Way, b: Way): boolean {
  return !(a.fixed && b.least > a.least) && !(b.fixed && a.least > b.least)
}

/**
 * Whether two lists can be walked to their ends together: a `many` stays while the other goes on,
 * or is passed for nothing; two others pass each other where they meet. This is the product of two
 * automata, whose states are places in the lists.
 */
function walk<T extends { many: boolean }>(
  a: T[],
  b: T[],
  meet: (a: T, b: T, steps: Steps) => boolean,
  steps: Steps,
): boolean {
  let here = new Uint8Array(b.length + 1)
  here[0] = 1
  for (const one of a) {
    spend(steps, b.length + STEPS_EACH)
    const next = new Uint8Array(b.length + 1)
    let isAlive = false
    for (let j = 0; j <= b.length; j += 1) {
      if (here[j] === 0) continue
      isAlive = true
      const other = b[j]
      if (one.many || other?.many) {
        next[j] = 1
        if (other) here[j + 1] = 1
      } else if (other && meet(one, other, steps)) next[j + 1] = 1
    }
    if (!isAlive) return false
    here = next
  }
  // What is left of `b` must be able to stand for nothing.
  const furthest = here.lastIndexOf(1)
  return furthest !== -1 && b.slice(furthest).every(({ many }) => many)
}

function spend(steps: Steps, count: number): void {
  steps.left -= count
  if (steps.left >= 0) return
  throw new Refusal(
    'too_large',
    'To compare these globs with those of others would take too long',
    { next: 'Ask for fewer at once, or name folders and files rather than patterns.' },
  )
}

function segmentsMeet(a: Segment, b: Segment, steps: Steps): boolean {
  if (a.name !== undefined && b.name !== undefined) return a.name === b.name
  if (a.name !== undefined) return isNamed(a, b, steps)
  return b.name === undefined ? walk(a.pieces, b.pieces, piecesMeet, steps) : isNamed(b, a, steps)
}

/**
 * Whether `named` is among what `other` stands for. Each `*` takes as little as it can: where that
 * fails, only the last one can take more, so nothing is tried twice.
 */
function isNamed({ pieces: name }: Segment, other: Segment, steps: Steps): boolean {
  const { pieces, least } = other
  if (least > name.length || (least === pieces.length && least < name.length)) return false
  let [at, i] = [0, 0]
  let star = -1
  let from = 0
  while (at < name.length) {
    spend(steps, 1)
    const piece = pieces[i]
    if (piece?.many) {
      star = i
      from = at
      i += 1
    } else if (piece && piecesMeet(name[at]!, piece)) {
      at += 1
      i += 1
    } else if (star === -1) return false
    else {
      from += 1
      at = from
      i = star + 1
    }
  }
  while (pieces[i]?.many) i += 1
  return i === pieces.length
}

/** By index: this is what comparing consists of, and iterators would take four times as long. */
function piecesMeet({ ranges }: Piece, { ranges: others }: Piece): boolean {
  for (let i = 0; i < ranges.length; i += 1) {
    for (let j = 0; j < others.length; j += 1) {
      if (ranges[i]![0] <= others[j]![1] && others[j]![0] <= ranges[i]![1]) return true
    }
  }
  return false
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
  const name = nameOf(pieces)
  if (name === '.' || name === '..') throw badGlob(text, text.indexOf(name), `no file is ${name}`)
  const least = pieces.filter(({ many }) => !many).length
  return { many: false, pieces, name, least }
}

/** The one name that pieces without magic stand for. */
function nameOf(pieces: Piece[]): string | undefined {
  const points = pieces.map((piece) => pointOf(piece))
  return points.includes(-1) ? undefined : String.fromCodePoint(...points)
}

const pointOf = ({ many, ranges: [first, ...rest] }: Piece) =>
  !many && first && rest.length === 0 && first[0] === first[1] ? first[0] : -1

function commonBase(ways: Way[]): string {
  let base = ''
  for (let i = 0; ; i += 1) {
    const [name, ...others] = ways.map(({ segments }) => (segments[i] ?? FOLDERS).name)
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
