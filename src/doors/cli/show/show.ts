import pc from 'picocolors'
import { inWordsOf } from '../../../core/next.ts'
import { asCommand } from '../../../operations/command.ts'
import type { AnswerOf, RegisteredName } from '../../../operations/registry.ts'
import { io } from '../../io.ts'
import { readingOf } from '../../reads/all.ts'
import type { Pen } from '../../reads/pen.ts'
import { harmless, printable, safeJson } from '../../unseen.ts'
import type { Context } from '../context.ts'
import { clock, clocked, factLines, indented, moreOf, table } from './table.ts'

/** In colour, with the times of this machine's clock. What others wrote is spelled out before. */
const PEN: Pen = {
  did: pc.green,
  undid: pc.yellow,
  good: pc.green,
  warn: pc.yellow,
  bad: pc.red,
  strong: pc.bold,
  dim: pc.dim,
  time: clock,
  sentence: clocked,
  said: (text) => text,
  body: (_, text) => indented(text),
  call: asCommand,
  facts: factLines,
  table,
  more: moreOf,
  isTool: false,
}

/** Prints a result: JSON for a program, words and tables for a person. */
export function show<N extends RegisteredName>(
  { json }: { json: Context['json'] },
  operation: N,
  answer: AnswerOf<N>,
): void {
  const result = inWordsOf(answer as object, asCommand)
  if (json) return print(safeJson(result))
  const shown = printable(result)
  print(readingOf(operation, shown, PEN) ?? JSON.stringify(shown, null, 2))
}

/** The only way to standard output: nothing but our colours reaches a terminal as a command. */
export function print(text: string): void {
  io().stdout.write(`${harmless(text)}\n`)
}
