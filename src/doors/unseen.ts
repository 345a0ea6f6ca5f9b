// Format characters (zero-width, bidirectional, tags), line and paragraph separators, and controls
// but for tab and line feed. What they do to a text cannot be seen.
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}\p{Co}\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu

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
