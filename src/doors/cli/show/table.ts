import type { Bytes } from '../../../stores/port.ts'
import { stripVTControlCharacters } from 'node:util'
import pc from 'picocolors'

/** Columns for a person. Text from tasks cannot colour or move the cursor: it is stripped. */
export function table(head: string[], rows: string[][], empty: string): string {
  if (rows.length === 0) return pc.dim(empty)
  const all = [head, ...rows]
  const widths = head.map((_, i) => Math.max(...all.map((row) => width(row[i] ?? ''))))
  const line = (row: string[]) =>
    row
      .map((cell, i) => cell + ' '.repeat(Math.max(0, widths[i]! - width(cell))))
      .join('  ')
      .trimEnd()
  return [pc.dim(line(head)), ...rows.map(line)].join('\n')
}

type Cell = string | number | null | undefined | readonly string[]
/** A column shows a field as it is, or something made of the item. */
type Columns<T> = Record<string, keyof T | ((item: T) => Cell)>

/** One page of items with a column for each fact, and how to see the rest. */
export function pageTable<T extends object>(
  { items, next = null }: { items: readonly T[]; next?: string | null },
  empty: string,
  columns: Columns<T>,
): string {
  const show = Object.values(columns)
  const cell = (item: T, of: keyof T | ((item: T) => Cell)) => {
    const shown = typeof of === 'function' ? of(item) : (item[of] as Cell)
    return typeof shown === 'object' ? (shown ?? []).join(' ') : String(shown ?? '')
  }
  const rows = items.map((item) => show.map((of) => cell(item, of)))
  return table(Object.keys(columns), rows, empty) + moreOf(next)
}

export const moreOf = (next: string | null) => (next ? pc.dim(`\nmore: --after ${next}`) : '')

export type SheetFact = [name: string, value: string | number | null]

/** What is known, one fact per line. */
export const factLines = (facts: SheetFact[]) =>
  facts
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `  ${pc.dim(name.padEnd(11))} ${value}`)

function width(cell: string): number {
  return Array.from(stripVTControlCharacters(cell)).length
}

/** 125 → `2m 05s`: easier to judge at a glance than a time of day. */
export function span(seconds: number): string {
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  const rest = String(seconds % 60).padStart(2, '0')
  if (minutes < 60) return `${minutes}m ${rest}s`
  return `${Math.floor(minutes / 60)}h ${String(minutes % 60).padStart(2, '0')}m`
}

const megabytes = (bytes: number) => `${(bytes / 1024 ** 2).toFixed(1)} MB`

export const bytesText = ({ bytes, free_bytes }: Bytes) =>
  `${megabytes(bytes)}, of which free: ${megabytes(free_bytes)}`
