/** The first of some rows: no more are read than are wanted. */

export function first<Row>(rows: Iterable<Row>): Row | undefined {
  for (const row of rows) return row
  return undefined
}

export const isNone = (rows: Iterable<unknown>) => first(rows) === undefined

/** No more of them than `limit`. */
export function* firstOf<Row>(rows: Iterable<Row>, limit: number): Generator<Row> {
  let left = limit
  if (left <= 0) return
  for (const row of rows) {
    yield row
    if ((left -= 1) === 0) return
  }
}
