import { Refusal } from '../core/refusal.ts'
import { KEYS, type TableName, type Tables } from '../core/rows.ts'
import { type Cursor, INDEXES, type IndexName } from '../core/view.ts'

/** `next` of a page is where the following one begins, as text that means nothing to the client. */
export function cursorIn(after: string | undefined): Cursor | undefined {
  if (after === undefined) return undefined
  try {
    const [order, key] = JSON.parse(Buffer.from(after, 'base64url').toString()) as unknown[]
    const ordered = typeof order === 'number' || typeof order === 'string'
    if (ordered && typeof key === 'string') return { order, key }
  } catch {
    // Falls through to the refusal: whatever it was, it was not ours.
  }
  throw new Refusal('invalid', 'after is not the `next` of a page', {
    next: 'Leave it out to begin at the first page.',
  })
}

/** A page with this much text ends before its limit: a thousand prompts are gigabytes. */
const TEXT_MAX = 4 * 1024 * 1024

/**
 * The first `limit` rows that `show` does not leave out (null), and where to go on. Looks at no
 * more than `looks` rows: where few of many are wanted, a page may end early, and even be empty.
 */
export function pageOf<I extends IndexName, Shown>(
  rows: Iterable<Tables[(typeof INDEXES)[I]['table']]>,
  index: I,
  limit: number,
  show: (row: Tables[(typeof INDEXES)[I]['table']]) => Shown | null,
  looks = Infinity,
): { items: Shown[]; next: string | null } {
  type Row = Tables[(typeof INDEXES)[I]['table']]
  const items: Shown[] = []
  let last: Row | undefined
  let seen: Row | undefined
  let size = 0
  let left = looks
  for (const row of rows) {
    if (left === 0) return { items, next: placeOf(index, seen!) }
    left -= 1
    seen = row
    const item = show(row)
    if (item === null) continue
    const isFull = items.length === limit || size >= TEXT_MAX
    if (isFull) return { items, next: last ? placeOf(index, last) : null }
    items.push(item)
    size += (item as { body?: string }).body?.length ?? 0
    last = row
  }
  return { items, next: null }
}

/** Where the page behind `row` begins: what `cursorIn` reads. */
export function placeOf(index: IndexName, row: Tables[TableName]): string {
  const { table, order } = INDEXES[index]
  const key = row[KEYS[table] as keyof typeof row]
  const at = (order as (row: Tables[TableName]) => number | string)(row)
  return Buffer.from(JSON.stringify([at, key])).toString('base64url')
}
