import type { WordPart } from './tokens.ts'

/** A word as a command would get it: its text, and whether the shell would look for files. */
export interface WordValue {
  text: string
  glob: boolean
}

/** What variables hold, as far as the script itself says so; several in a loop. */
export type Variables = Map<string, WordValue[] | undefined>

const BRACES = /\{([^{}]*,[^{}]*)\}/
const ALTERNATIVES_MAX = 64

/** The variables of a word that have several values: its command runs once for each. */
export function loopVariables(words: readonly WordPart[][], variables: Variables): string[] {
  const names = words.flatMap((parts) =>
    parts.flatMap((part) => (part.kind === 'variable' ? [part.name] : [])),
  )
  return [...new Set(names)].filter((name) => (variables.get(name)?.length ?? 0) > 1)
}

/**
 * What a word becomes: one value, more with braces, or undefined where only a run would tell.
 * Every variable must have one value at most.
 */
export function valuesOf(
  parts: readonly WordPart[],
  variables: Variables,
  home: string,
): WordValue[] | undefined {
  let found: WordValue[] = [{ text: '', glob: false }]
  for (const [i, part] of parts.entries()) {
    const next = part.kind === 'text' ? textValues(part, i === 0, home) : oneValue(part, variables)
    if (!next) return undefined
    found = found.flatMap((value) =>
      next.map(({ text, glob }) => ({ text: value.text + text, glob: value.glob || glob })),
    )
    if (found.length > ALTERNATIVES_MAX) return undefined
  }
  return found
}

function oneValue(part: WordPart, variables: Variables): WordValue[] | undefined {
  return part.kind === 'variable' ? variables.get(part.name) : undefined
}

function textValues(
  { text, quoted }: { text: string; quoted: boolean },
  first: boolean,
  home: string,
): WordValue[] {
  if (quoted) return [{ text, glob: false }]
  const full = first ? text.replace(/^~(?=\/|$)/, () => home) : text
  return expandBraces(full).map((each) => ({ text: each, glob: /[*?[]/.test(each) }))
}

/** `a{b,c}` → `ab`, `ac`. Braces without a comma stay as they are. */
function expandBraces(text: string): string[] {
  const match = BRACES.exec(text)
  if (!match) return [text]
  const [whole, inner] = match
  return inner!.split(',').flatMap((each) => {
    return expandBraces(text.slice(0, match.index) + each + text.slice(match.index + whole.length))
  })
}
