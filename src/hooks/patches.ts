/** Blanks as tools that apply patches know them: Unicode's, and what JavaScript takes for one. */
const BLANK = String.raw`[\s\u0085]`
const ENVELOPE = new RegExp(
  `^${BLANK}*\\*{3}${BLANK}*(?:(?:add|update|delete)${BLANK}+file|move${BLANK}+to)${BLANK}*:(.*)$`,
  'is',
)
const CONTROL = /\p{Cc}/u
const ENDS = new RegExp(`^${BLANK}+|${BLANK}+$`, 'g')

/**
 * The files that a patch in the format of `apply_patch` names, both sides of a move included. Tools
 * differ in which blanks around a marker and a name they take off, so a padded name is given in
 * every way that one of them may read it: to reserve one name too many hurts nobody.
 */
export function pathsInEnvelope(text: string): string[] {
  const found = new Set<string>()
  for (const line of [...text.split('\n'), ...text.split(/[\r\u0085\u2028\u2029]/)]) {
    const named = ENVELOPE.exec(line)?.[1]
    if (named === undefined) continue
    const bare = named.replaceAll(ENDS, '')
    const asIs = named.replace(/^ /, '').replace(/\r$/, '')
    const ways = [bare, asIs, asIs.replace(new RegExp(`${BLANK}+$`), '')]
    // Only blanks make a name that others have: with a tab behind it, it would be a new one.
    for (const path of ways) if (path === bare || !CONTROL.test(path)) found.add(path)
  }
  return [...found].filter((path) => path.replaceAll(ENDS, '') !== '')
}

const ADDED = new RegExp(`^${BLANK}*\\*{3}${BLANK}*add${BLANK}+file${BLANK}*:`, 'i')

/** The files that such a patch writes whole, over what may be there. */
export const pathsAdded = (text: string) =>
  pathsInEnvelope(
    text
      .split('\n')
      .filter((line) => ADDED.test(line))
      .join('\n'),
  )

const NONE = '/dev/null'
const HEADER = /^(?:---|\+\+\+) (.+?)(?:\t.*)?$/
const MOVE = /^(?:rename|copy) (?:from|to) (.+)$/
const GIT = /^diff --git a\/(.+) b\/(.+)$/

/**
 * The files that a unified diff changes, without its first `strip` folders. Without a number (the
 * old `patch`) only the names themselves are known.
 */
export function pathsInDiff(text: string, strip: number): string[] {
  const found = new Set<string>()
  for (const line of text.split('\n')) {
    const moved = MOVE.exec(line)?.[1]
    if (moved !== undefined) found.add(unquoted(moved))
    const header = HEADER.exec(line)?.[1]
    if (header !== undefined && header !== NONE) found.add(stripped(unquoted(header), strip))
    // A file whose mode alone changes, or an empty one, has no other line.
    const [, , to] = GIT.exec(line) ?? []
    if (to !== undefined) found.add(to)
  }
  found.delete('')
  return [...found]
}

function stripped(path: string, strip: number): string {
  const parts = path.split('/')
  return Number.isFinite(strip) ? parts.slice(strip).join('/') : parts.at(-1)!
}

/** git quotes names that are not plain: `"b/\303\274.ts"`. */
function unquoted(name: string): string {
  if (!/^".*"$/.test(name)) return name
  const bytes: number[] = []
  for (const [, octal, escaped, plain] of name
    .slice(1, -1)
    .matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g)) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8))
    else bytes.push(...Buffer.from(escaped === undefined ? plain! : (ESCAPES[escaped] ?? escaped)))
  }
  return Buffer.from(bytes).toString('utf8')
}

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r' }
