import { Refusal } from '../../../core/refusal.ts'

/** The lines between which a text is ours. A marker line may go on behind its first words. */
export interface Marks {
  begin: string
  end: string
}

export const MARKDOWN: Marks = {
  begin: '<!-- leasehold:begin -->',
  end: '<!-- leasehold:end -->',
}
export const HASHES: Marks = { begin: '# leasehold:begin', end: '# leasehold:end' }

interface Span {
  start: number
  end: number
}

/** The lines of our block. Refuses (`invalid`) a block that does not end, or one inside another. */
function findBlock(lines: string[], marks: Marks, path: string): Span | undefined {
  const starts = (mark: string) => (line: string) => line.trim().startsWith(mark)
  const start = lines.findIndex(starts(marks.begin))
  const end = lines.findIndex(starts(marks.end))
  if (start === -1 && end === -1) return undefined
  const again = lines.findLastIndex(starts(marks.begin))
  if (start !== -1 && end > start && again === start) return { start, end }
  const at = Math.max(start, end, again) + 1
  throw new Refusal('invalid', `${path}:${at}: the leasehold markers do not pair`, {
    next: `Keep one ${marks.begin} with one ${marks.end} behind it, or neither.`,
  })
}

export const eolOf = (text: string) => (text.includes('\r\n') ? '\r\n' : '\n')
const linesOf = (text: string) => text.split(/\r?\n/)

export function hasBlock(text: string, marks: Marks, path: string): boolean {
  return findBlock(linesOf(text), marks, path) !== undefined
}

/**
 * The text with our block in it: in its old place if it has one, else at the end, behind an empty
 * line. Line ends, and whether the last line has one, stay as they are.
 */
export function withBlock(
  text: string | undefined,
  body: string,
  marks: Marks,
  path: string,
): string {
  const block = [marks.begin, ...body.trimEnd().split('\n'), marks.end]
  if (text === undefined || text === '') return `${block.join('\n')}\n`
  const eol = eolOf(text)
  const span = findBlock(linesOf(text), marks, path)
  if (span) return replaceLines(text, span, block.join(eol) + eol)
  const isEnded = text.endsWith('\n')
  return `${text}${isEnded ? '' : eol}${eol}${block.join(eol)}${isEnded ? eol : ''}`
}

/** With the block at the head: behind the line that names the interpreter, if there is one. */
export function withHeadBlock(text: string, body: string, marks: Marks, path: string): string {
  const eol = eolOf(text)
  const block = [marks.begin, ...body.trimEnd().split('\n'), marks.end].join(eol) + eol
  const span = findBlock(linesOf(text), marks, path)
  if (span) return replaceLines(text, span, block)
  const [head = ''] = /^#!.*(?:\r?\n|$)/.exec(text) ?? []
  const ended = head === '' || head.endsWith('\n') ? head : head + eol
  return ended + block + text.slice(head.length)
}

/** Other lines are left as they are, even if their ends differ from each other. */
function replaceLines(text: string, { start, end }: Span, by: string): string {
  const from = offsetOf(text, start)
  const to = offsetOf(text, end + 1)
  const isLast = to === text.length && !text.endsWith('\n')
  return text.slice(0, from) + (isLast ? by.replace(/\r?\n$/, '') : by) + text.slice(to)
}

function offsetOf(text: string, line: number): number {
  let at = 0
  for (let i = 0; i < line; i++) {
    const next = text.indexOf('\n', at)
    if (next === -1) return text.length
    at = next + 1
  }
  return at
}

/** The text without our block and without the empty line that we put before it. */
export function withoutBlock(text: string, marks: Marks, path: string): string {
  const lines = linesOf(text)
  const span = findBlock(lines, marks, path)
  if (!span) return text
  const isLast = !text.endsWith('\n') && span.end === lines.length - 1
  const isSpaced = span.start > 1 && lines[span.start - 1] === ''
  const follows = lines[span.end + 1] ?? ''
  let before = text.slice(0, offsetOf(text, span.start))
  if (isSpaced && follows === '') before = before.replace(/\r?\n$/, '')
  if (isLast) before = before.replace(/\r?\n$/, '')
  return before + text.slice(offsetOf(text, span.end + 1))
}
