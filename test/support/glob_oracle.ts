/**
 * What globs mean, said a second time and in another way than `core/paths/glob.ts` does: braces are
 * written out, names are matched by regular expressions, and `**` is tried with every number of
 * names. Slow, and easy to believe.
 */
export function oracleOf(glob: string): (path: string) => boolean {
  const ways = writtenOut(glob).map((plain) => {
    const parts = plain.split('/').filter((part) => part !== '' && part !== '.')
    if (plain.endsWith('/') || parts.length === 0) parts.push('**')
    return parts.map((part) => (part === '**' ? part : expressionOf(part)))
  })
  return (path) => {
    const names = path.split('/')
    return ways.some((parts) => partsMatch(parts, names))
  }
}

/** All ways to read the braces, the first pair of them first. */
function writtenOut(glob: string): string[] {
  const open = places(glob, '{')[0]
  if (open === undefined) return [glob]
  let depth = 0
  let from = open + 1
  const choices: string[] = []
  for (let i = open; i < glob.length; i += 1) {
    if (glob[i] === '\\') i += 1
    else if (glob[i] === '[') i = glob.indexOf(']', i + 2)
    else if (glob[i] === '{') depth += 1
    else if (glob[i] === ',' && depth === 1) {
      choices.push(glob.slice(from, i))
      from = i + 1
    } else if (glob[i] === '}') {
      depth -= 1
      if (depth > 0) continue
      choices.push(glob.slice(from, i))
      return choices.flatMap((choice) =>
        writtenOut(glob.slice(0, open) + choice + glob.slice(i + 1)),
      )
    }
  }
  throw new Error(`unclosed: ${glob}`)
}

/** Where a character stands that is neither escaped nor in a class. */
function places(glob: string, wanted: string): number[] {
  const found: number[] = []
  for (let i = 0; i < glob.length; i += 1) {
    if (glob[i] === '\\') i += 1
    else if (glob[i] === '[') i = glob.indexOf(']', i + 2)
    else if (glob[i] === wanted) found.push(i)
  }
  return found
}

function partsMatch(parts: ('**' | RegExp)[], names: string[]): boolean {
  const [part, ...rest] = parts
  if (part === undefined) return names.length === 0
  if (part === '**') {
    return partsMatch(rest, names) || (names.length > 0 && partsMatch(parts, names.slice(1)))
  }
  const [name, ...others] = names
  return name !== undefined && part.test(name) && partsMatch(rest, others)
}

function expressionOf(part: string): RegExp {
  const source = part.replaceAll(/\\(.)|\[(!?)([^\]]+)\]|[*?]|[.+^$(){}|]/gu, (all, ...found) => {
    const [escaped, not, members] = found as (string | undefined)[]
    if (escaped !== undefined) return `\\u{${escaped.codePointAt(0)!.toString(16)}}`
    if (members !== undefined) return `[${not ? '^' : ''}${members}]`
    return all === '*' ? '.*' : all === '?' ? '.' : `\\${all}`
  })
  return new RegExp(`^${source}$`, 'su')
}
