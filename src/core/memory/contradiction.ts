/**
 * Whether two notes that are worded alike state different things: another number, another name, a
 * negation or its opposite. Meaning alone cannot tell: "port 5432" is as near to "port 5433" as two
 * texts can be. What only one of them adds is detail, and no contradiction.
 */
export function contradicts(one: string, other: string): boolean {
  const [a, b] = [factsOf(one.slice(0, TEXT_MAX)), factsOf(other.slice(0, TEXT_MAX))]
  if (differ(a.numbers, b.numbers) || differ(a.names, b.names)) return true
  if (a.negated !== b.negated || isTraded(a.said, b.said)) return true
  return OPPOSITES.some(([x, y]) => says(a, b, x, y) || says(a, b, y, x))
}

/** Others wait while notes are compared: of a long one the beginning has to do. */
const TEXT_MAX = 4_000

type Facts = Record<'numbers' | 'names' | 'words', Set<string>> & {
  negated: boolean
  /** Word by word, in order. */
  said: Said[]
}

interface Said {
  word: string
  number?: string | undefined
}

/** Each says something that the other does not. */
const differ = (a: Set<string>, b: Set<string>) =>
  [...a].some((each) => !b.has(each)) && [...b].some((each) => !a.has(each))

/**
 * The same numbers, of other things: `retry 3 times, wait 3 s` and `wait 5 s`, or two ports that
 * were swapped. As sets they do not differ, so they are compared where they stand, in texts of the
 * same form or of the same words; unless each number stands beside the same word in both.
 */
function isTraded(a: Said[], b: Said[]): boolean {
  if (a.length !== b.length || !a.some(({ number }) => number !== undefined)) return false
  const same = a.filter((each, i) => formOf(each) === formOf(b[i]!)).length
  const isOther = ({ number }: Said, i: number) =>
    number !== undefined && b[i]!.number !== undefined && b[i]!.number !== number
  const isOfOneForm = same >= a.length * ALIKE && a.some(isOther)
  if (!isOfOneForm && sorted(a.map(({ word }) => word)) !== sorted(b.map(({ word }) => word))) {
    return false
  }
  return ([1, -1] as const).every((step) => sorted(besides(a, step)) !== sorted(besides(b, step)))
}

/** How much of two texts has to be the same for their numbers to stand for the same things. */
const ALIKE = 0.8

const formOf = ({ word, number }: Said) => (number === undefined ? word : '#')
const sorted = (words: string[]) => words.toSorted().join(' ')

/** Each number with the next word before it, or behind it, that says which of them it is. */
function besides(said: Said[], step: 1 | -1): string[] {
  const times = new Map<string, number>()
  for (const { word } of said) times.set(word, (times.get(word) ?? 0) + 1)
  const tells = ({ word, number }: Said) =>
    number === undefined && !SMALL.has(word) && times.get(word) === 1
  return said.flatMap(({ number }, from) => {
    if (number === undefined) return []
    let beside = said[(from += step)]
    while (beside && !tells(beside)) beside = said[(from += step)]
    return [`${number}:${beside?.word ?? ''}`]
  })
}

const SMALL = new Set(
  'a an the on at in of to is are be and or for with by from it then'.split(' '),
)

const says = (a: Facts, b: Facts, x: string, y: string) =>
  a.words.has(x) && !a.words.has(y) && b.words.has(y) && !b.words.has(x)

const SPELLED = `zero one two three four five six seven eight nine ten eleven twelve thirteen
  fourteen fifteen sixteen seventeen eighteen nineteen twenty`.split(/\s+/)
const NUMBERS = new Map(
  `thirty/30 forty/40 fifty/50 sixty/60 ninety/90 hundred/100 once/1 twice/2 half/0.5 midnight/0
  noon/12`
    .split(/\s+/)
    .map((pair) => pair.split('/') as [string, string]),
)

const NEGATIONS = new Set(
  `not no never none neither nor without cannot avoid except unless otherwise instead rather dont
  doesnt didnt isnt arent wasnt wont cant shouldnt mustnt nothing nobody forbidden stop`.split(
    /\s+/,
  ),
)

const OPPOSITES =
  `enabled/disabled enable/disable on/off before/after always/sometimes allowed/denied
  allow/deny public/private required/optional must/may sync/async first/last open/closed
  increase/decrease higher/lower more/fewer more/less minimum/maximum client/server
  staging/production read/write ascending/descending add/remove internal/external safe/unsafe
  supported/deprecated daily/weekly weekly/monthly nightly/hourly hourly/daily morning/evening
  manually/automatically synchronous/asynchronous case-sensitive/case-insensitive true/false
  primary/replica left/right local/remote success/failure mutable/immutable hard/soft`
    .split(/\s+/)
    .map((pair) => pair.split('/') as [string, string])

/** A word that begins a sentence is capital anyway: only one that does not is a name for sure. */
function factsOf(text: string): Facts {
  const tokens = text.match(/[\p{L}\p{N}][\p{L}\p{N}_.:/@'’-]*/gu) ?? []
  const facts: Facts = {
    numbers: new Set(),
    names: new Set(),
    negated: false,
    words: new Set(),
    said: [],
  }
  let begins = true
  for (const token of tokens) {
    const bare = token.replace(/[.:/'’-]+$/, '')
    const word = bare.toLowerCase().replaceAll(/['’]/g, '')
    facts.words.add(word)
    const number = numberIn(word)
    facts.said.push({ word, number })
    if (number !== undefined) facts.numbers.add(number)
    else if (isName(bare, begins)) facts.names.add(word.replace(/s$/, ''))
    if (NEGATIONS.has(word)) facts.negated = true
    begins = /[.:]$/.test(token) || text[text.indexOf(token) + token.length] === ':'
  }
  return facts
}

/** `15`, `fifteen`, `15m` and `1,000` as one spelling each. */
function numberIn(word: string): string | undefined {
  const spelled = SPELLED.indexOf(word)
  if (spelled >= 0) return String(spelled)
  if (NUMBERS.has(word)) return NUMBERS.get(word)
  const [, digits] = /^v?(\d[\d.,:]*)(?:[a-z%]{0,3})$/.exec(word) ?? []
  return digits
    ?.replaceAll(',', '')
    .replace(/^0+(?=\d)/, '')
    .replace(/:00$/, '')
}

function isName(token: string, begins: boolean): boolean {
  if (/[_/@]|\w\.\w|\d/.test(token)) return true
  if (/^\p{Lu}[\p{Lu}\d-]+$/u.test(token) || /\p{Ll}\p{Lu}/u.test(token)) return true
  return !begins && /^\p{Lu}/u.test(token)
}
