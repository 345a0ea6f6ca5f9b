// Format characters (zero-width, bidirectional, tags), line and paragraph separators, letters that
// are blank, and controls but for tab and line feed. What they do to a text cannot be seen.
const UNSEEN =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /[\p{Cf}\p{Zl}\p{Zp}\p{Co}\x00-\x08\x0b-\x1f\x7f-\x9f\u2800\u{13441}\u{13442}]|(?!\ufe0f)\p{DI}/gu

const named = (each: string) => `\\u{${each.codePointAt(0)!.toString(16)}}`

/** A text in which nothing moves the cursor, changes direction or hides: it is spelled out. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, named)
}

/** Which characters of a text cannot be seen, and how many; empty where there are none. */
export function unseenIn(text: string): string {
  const counts = new Map<string, number>()
  for (const [each] of text.matchAll(UNSEEN)) counts.set(each, (counts.get(each) ?? 0) + 1)
  return [...counts]
    .slice(0, 8)
    .map(([each, n]) => `${named(each)} × ${n}`)
    .join(', ')
}

// oxlint-disable-next-line no-control-regex -- these are what is looked for
const COLOUR = /(\u001b\[[0-9;:]*m)/

/** The same for what a command printed: its colours stay, and lines that it wrote over, too. */
export function harmless(text: string): string {
  return text
    .replaceAll(/\r+\n?/g, '\n')
    .split(COLOUR)
    .map((part, i) => (i % 2 === 1 ? part : visible(part)))
    .join('')
}

// oxlint-disable-next-line no-control-regex -- these are what is looked for
const UNFINISHED = /(?:\u001b(?:\[[0-9;:]*)?|\r)$/

/** Output of a command as a terminal may show it, piece by piece as it is read. */
export class SafeOutput {
  private readonly decoder = new TextDecoder()
  private rest = ''

  feed(bytes: Uint8Array): string {
    const text = this.rest + this.decoder.decode(bytes, { stream: true })
    this.rest = UNFINISHED.exec(text.slice(-100))?.[0] ?? ''
    return harmless(text.slice(0, text.length - this.rest.length))
  }
}

/** Every text in a result, made safe to be shown to a person. */
export function printable<T>(value: T): T {
  if (typeof value === 'string') return visible(value) as T
  if (Array.isArray(value)) return value.map(printable) as T
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, each]) => [visible(key), printable(each)])
  return Object.fromEntries(entries) as T
}

/** JSON that moves no cursor either: what JSON itself leaves as it is, is escaped. */
export const safeJson = (value: unknown) =>
  JSON.stringify(value).replaceAll(/[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]/gu, (each) =>
    Array.from(
      { length: each.length },
      (_, i) => `\\u${each.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
