import { stripVTControlCharacters } from 'node:util'
import { oneLine } from '../../../core/quote.ts'

/** Characters that take two columns: East Asian scripts and pictures. */
const WIDE = new RegExp(
  '[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff' +
    '\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6\\u{1f300}-\\u{1faff}]',
  'u',
)

/** What is drawn over the character before it. */
const ADDED = /\p{Mn}|\p{Me}|\p{Cf}/u

function cellsOf(character: string): number {
  if (character < '\u0300') return 1
  return WIDE.test(character) ? 2 : ADDED.test(character) ? 0 : 1
}

/** How many columns a text takes; what only colours it takes none. */
export const widthOf = (text: string) =>
  Array.from(stripVTControlCharacters(text)).reduce((sum, each) => sum + cellsOf(each), 0)

/** Text from anybody, on one line: without what would move the cursor, colour or beep. */
export function clean(text: string): string {
  const plain = oneLine(stripVTControlCharacters(text))
  // Marks that turn the direction of what follows could make one thing look like another.
  return plain.replaceAll(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
}

/** Exactly `width` columns: cut with an ellipsis, or filled with spaces. */
export function fit(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  if (width <= 0) return ''
  const characters = Array.from(clean(text))
  const cells = characters.reduce((sum, each) => sum + cellsOf(each), 0)
  if (cells <= width) {
    const space = ' '.repeat(width - cells)
    return side === 'left' ? characters.join('') + space : space + characters.join('')
  }
  let kept = ''
  let used = 0
  for (const each of characters) {
    if (used + cellsOf(each) > width - 1) break
    kept += each
    used += cellsOf(each)
  }
  return `${kept}…${' '.repeat(width - used - 1)}`
}
