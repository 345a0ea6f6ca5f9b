import { type Action, actionsOf, nextText, type Say } from '../../core/next.ts'
import type { AnswerOf, RegisteredName } from '../../operations/registry.ts'
import type { Bytes } from '../../stores/port.ts'

export type SheetFact = [name: string, value: string | number | null]

/**
 * With what a door writes an answer: a terminal in colour and columns, a tool briefly, and the
 * words of others so that they cannot pass for ours.
 */
export interface Pen {
  /** What was done, as the first word of its line; `undid`, what somebody may not like. */
  did: (verb: string) => string
  undid: (verb: string) => string
  good: (text: string) => string
  warn: (text: string) => string
  bad: (text: string) => string
  strong: (text: string | number) => string
  dim: (text: string) => string
  time: (at: string | null) => string
  /** A sentence of ours that may have times in it. */
  sentence: (text: string) => string
  /** Somebody's own words: in the line, and below it. */
  said: (text: string) => string
  body: (what: string, text: string) => string
  call: Say
  facts: (facts: SheetFact[]) => string[]
  table: (head: string[], rows: string[][]) => string
  more: (next: string) => string
  /** An agent goes on from the answer: it reads whole what it has claimed. */
  isTool: boolean
}

/** How the answers of operations read, whichever door shows them. */
export type Readings = {
  [N in RegisteredName]?: (answer: AnswerOf<N>, pen: Pen) => string
}

type Cell = string | number | null | undefined | readonly string[]
/** A column shows a field as it is, or something made of the item. */
type Columns<T> = Record<string, keyof T | ((item: T) => Cell)>

/** One page of items with a column for each fact, and how to see the rest. */
export function pageTable<T extends object>(
  pen: Pen,
  { items, next = null }: { items: readonly T[]; next?: string | null },
  empty: string | Action,
  columns: Columns<T>,
): string {
  const cell = (item: T, of: keyof T | ((item: T) => Cell)) => {
    const shown = typeof of === 'function' ? of(item) : (item[of] as Cell)
    return typeof shown === 'object' ? (shown ?? []).join(' ') : String(shown ?? '')
  }
  const rows = items.map((item) => Object.values(columns).map((of) => cell(item, of)))
  const none = () => pen.dim(nextText(actionsOf(empty), pen.call))
  const shown = rows.length === 0 ? none() : pen.table(Object.keys(columns), rows)
  return next === null ? shown : `${shown}\n${pen.more(next)}`
}

/** 125 → `2m 05s`: easier to judge at a glance than a time of day. */
export function span(seconds: number): string {
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  const rest = String(seconds % 60).padStart(2, '0')
  if (minutes < 60) return `${minutes}m ${rest}s`
  return `${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, '0')}m`
}

export const since = (at: string) =>
  span(Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000)))

const megabytes = (bytes: number) => `${(bytes / 1024 ** 2).toFixed(1)} MB`

export const bytesText = ({ bytes, free_bytes }: Bytes) =>
  `${megabytes(bytes)}, of which free: ${megabytes(free_bytes)}`
