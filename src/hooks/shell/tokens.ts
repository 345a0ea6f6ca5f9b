/** A piece of a word. What only a run of the shell could tell is `unknown`. */
export type WordPart =
  | { kind: 'text'; text: string; quoted: boolean }
  | { kind: 'variable'; name: string }
  | { kind: 'unknown' }

export type ShellToken =
  | { kind: 'word'; parts: WordPart[] }
  /** `;` stands for a line's end too; `)` closes a group, `pattern` ends a pattern of `case`. */
  | { kind: 'op'; op: string }
  /** The word behind it is its target; of a here-document it is the body. */
  | { kind: 'redirect'; op: string }
  /** A script that the command before or around it runs: `$(…)`, backticks, `<(…)`. */
  | { kind: 'script'; tokens: ShellToken[] }

/** The text of a word that is plain and unquoted throughout: a keyword, an operator's name. */
export function bareText(token: ShellToken | undefined): string | undefined {
  if (token?.kind !== 'word') return undefined
  const [part, more] = token.parts
  return part?.kind === 'text' && !part.quoted && !more ? part.text : undefined
}

/** Its text if no expansion is in it, quoted or not. */
export function literalText(parts: readonly WordPart[]): string | undefined {
  let text = ''
  for (const part of parts) {
    if (part.kind !== 'text') return undefined
    text += part.text
  }
  return text
}
