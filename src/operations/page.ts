import { type Cursor, cursorOf } from '../core/schema/indexes.ts'
import type { IndexName, TableName, TableOf, Tables } from '../core/schema/schema.ts'
import { Refusal } from '../core/refusal.ts'
import { Sight } from '../core/sight.ts'
import { sizeOf } from '../core/text.ts'
import type { View } from '../core/view.ts'

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

/** The page that was asked for of the rows that `index` has for `group`. */
export const pageIn = <I extends IndexName, Shown>(
  view: View,
  [index, group]: readonly [I, string],
  { limit, after }: { limit: number; after?: string | undefined },
  show: (row: RowIn<I>) => Shown | null,
  looks?: number,
) => {
  const from = cursorIn(after)
  const rows = view instanceof Sight ? view.walk(index, group, from) : view.scan(index, group, from)
  return pageOf(rows, index, limit, show, looks)
}

export interface ListPage {
  items: unknown[]
  next: string | null
}

export interface Paged {
  limit: number
  after: string | undefined
}

/**
 * A page for a token that is bound, from as many looks as it takes: between them others are
 * answered. Where it is full, one row more tells whether there is a next page; that begins behind
 * what was shown, because no cursor may name what is not.
 */
export async function inSteps(
  look: (asked: Paged) => Promise<[ListPage, Sight]>,
  { limit, after }: Paged,
): Promise<ListPage> {
  const items: unknown[] = []
  let [from, behind] = [after, null as string | null]
  for (;;) {
    const room = limit - items.length
    const [page, { left, shown }] = await look({ limit: room === 0 ? 1 : room, after: from })
    if (items.length === 0 && !left) return page
    if (room === 0 && page.items.length > 0) return { ...page, items, next: behind }
    items.push(...page.items)
    if (page.next !== null || !left) return { ...page, items }
    if (page.items.length > 0) behind = textOf(shown!)
    from = textOf(left)
  }
}

type RowIn<I extends IndexName> = Tables[TableOf<I>]

/** Of text: a page ends when it has so much, or when so much was read for it. */
export const PAGE_BYTES = 1024 * 1024
const LOOKED_BYTES = 8 * PAGE_BYTES

/**
 * The first `limit` rows that `show` does not leave out (null), and where to go on. Looks at no
 * more than `looks` rows, nor at more text than a page is worth: where few of many are wanted, a
 * page may end early, and even be empty.
 */
export function pageOf<I extends IndexName, Shown>(
  rows: Iterable<RowIn<I>>,
  index: I,
  limit: number,
  show: (row: RowIn<I>) => Shown | null,
  looks = Infinity,
): { items: Shown[]; next: string | null } {
  const items: Shown[] = []
  let [bytes, looked] = [0, 0]
  let last: RowIn<I> | undefined
  let seen: RowIn<I> | undefined
  let left = looks
  for (const row of rows) {
    if (left === 0 || looked > LOOKED_BYTES) return { items, next: placeOf(index, seen!) }
    left -= 1
    seen = row
    looked += sizeOf(row)
    const item = show(row)
    if (item === null) continue
    bytes += sizeOf(item)
    const isFull = items.length === limit || (bytes > PAGE_BYTES && items.length > 0)
    if (isFull) return { items, next: last ? placeOf(index, last) : null }
    items.push(item)
    last = row
  }
  return { items, next: null }
}

/** The first of them, up to so much text as a page may have. */
export function whileFitting<Row, Shown>(rows: Iterable<Row>, show: (row: Row) => Shown): Shown[] {
  const items: Shown[] = []
  let bytes = 0
  for (const row of rows) {
    items.push(show(row))
    bytes += sizeOf(items.at(-1))
    if (bytes > PAGE_BYTES) break
  }
  return items
}

/** Where the page behind `row` begins: what `cursorIn` reads. */
export function placeOf(index: IndexName, row: Tables[TableName]): string {
  return textOf(cursorOf(index, row))
}

const textOf = ({ order, key }: Cursor) =>
  Buffer.from(JSON.stringify([order, key])).toString('base64url')
