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
