const NAMED: Record<string, string> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\u0007',
  b: '\b',
  e: '\u001b',
  f: '\f',
  v: '\v',
}

const CODE = /^(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3}))/

/** What stands in `$'…'` from `at` on, and where it ends. */
export function ansiText(source: string, at: number): { text: string; end: number } {
  let text = ''
  for (; at < source.length && source[at] !== "'"; at += 1) {
    if (source[at] !== '\\') {
      text += source[at]
      continue
    }
    at += 1
    const [code, x, u, long, octal] = CODE.exec(source.slice(at, at + 9)) ?? []
    const hex = x ?? u ?? long
    if (code === undefined) text += NAMED[source[at] ?? ''] ?? source[at] ?? ''
    else {
      const point = Number.parseInt(hex ?? octal!, hex === undefined ? 8 : 16)
      text += point <= 0x10ffff ? String.fromCodePoint(point) : ''
      at += code.length - 1
    }
  }
  return { text, end: at + 1 }
}
