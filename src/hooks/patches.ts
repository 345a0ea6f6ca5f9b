const ENVELOPE = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$/gm

/** The files that a patch in the format of `apply_patch` names, both sides of a move included. */
export function pathsInEnvelope(text: string): string[] {
  return [...new Set([...text.matchAll(ENVELOPE)].map(([, path]) => path!))]
}

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
