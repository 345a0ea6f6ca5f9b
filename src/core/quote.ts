/**
 * What people and agents wrote, inside sentences of ours. Agents read refusals as instructions, so
 * others' words must not pass for leasehold's: a name is printed bare only where it cannot be taken
 * for a sentence, anything else stands in quotes, on one line, without marks that hide or turn it.
 */

// Letters that are blank, such as U+3164, would make two names look alike, or a word of none.
const NAME = /^(?:(?![\p{DI}\u{13441}\u{13442}])[\p{L}\p{N}_.:@#/*?{}[\]()!+~=%,&-])+$/u
const LONGEST = 200

// Format characters (zero-width, bidirectional), separators of lines, private use, controls, and
// what is blank though it is a letter or a symbol. U+FE0F makes a picture of what stands before it.
const HIDING = /(?:(?!\u{fe0f})[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cc}\p{DI}\u{2800}\u{13441}\u{13442}])+/gu

const onOneLine = (text: string) => text.replaceAll(HIDING, ' ')

const cut = (text: string) =>
  text.length <= LONGEST ? text : `${text.slice(0, LONGEST).replace(/[\ud800-\udbff]$/, '')}…`

/** A name or an id; in quotes when it could be read as anything else. */
export function word(text: string): string {
  return text.length <= LONGEST && NAME.test(text) ? text : quoted(text)
}

/** Somebody's own words, always in quotes. */
export const quoted = (text: string) => JSON.stringify(cut(onOneLine(text)))

/** An argument in a command that somebody may copy into a shell. */
export const argument = (text: string) =>
  /^[\w.:@/+,-]+$/.test(text) ? text : `'${onOneLine(text).replaceAll("'", String.raw`'\''`)}'`

/** `a`, `a and b`, `a, b and 3 more`. */
export function listed(names: readonly string[], shown = 3): string {
  if (names.length <= 1) return names.join('')
  const rest = names.length - shown
  const first = names.slice(0, rest > 0 ? shown : -1)
  return `${first.join(', ')} and ${rest > 0 ? `${rest} more` : names.at(-1)!}`
}

/** Text from anybody on one line: what would begin another, move a cursor or beep is a space. */
export const oneLine = (text: string) => text.replaceAll(/\p{Cc}+/gu, ' ')

/** One line of at most `max` characters that every store takes, whatever an error said. */
export const shortLine = (text: string, max: number) => oneLine(text).slice(0, max).toWellFormed()
