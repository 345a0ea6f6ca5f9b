import { Refusal } from '../../core/refusal.ts'

/** More than any operation takes: lists of a hundred names, metadata of some thousand fields. */
const VALUES_MAX = 10_000
/** Metadata may nest 50 levels deep, in arguments, in parameters, in a batch. */
const DEPTH_MAX = 64

const QUOTE = 0x22
const COMMA = 0x2c
const OPENS = new Set([0x5b, 0x7b])
const CLOSES = new Set([0x5d, 0x7d])

/**
 * What a text of JSON says, if it is not too deep and has not too many values: these are counted
 * before anything is made of them, in one pass. Schemas, and what is told of their issues, then
 * have little to do, whatever was sent.
 */
export function parseJson(text: string): unknown {
  refuseShape(text)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal('invalid', `The body is not JSON: ${(error as Error).message}`)
  }
}

function refuseShape(text: string): void {
  let [depth, values] = [0, 0]
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfText(text, at)
    else if (code === COMMA) values += 1
    else if (CLOSES.has(code)) depth -= 1
    else if (OPENS.has(code)) {
      depth += 1
      values += 1
    }
    if (depth > DEPTH_MAX) throw tooMuch('invalid', `nest at most ${DEPTH_MAX} levels deep`)
    if (values > VALUES_MAX) throw tooMuch('too_large', `have at most ${VALUES_MAX} values`)
  }
}

/** The quotation mark that ends the one at `from`, or the end of what was sent. */
function endOfText(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes += 1
    if (escapes % 2 === 0) return end
  }
  return text.length
}

function tooMuch(code: 'invalid' | 'too_large', bound: string): Refusal {
  return new Refusal(code, `A body may ${bound}`, {
    next: 'Send less at once, or keep large content in a file and name it.',
  })
}
