import { type Cursor, INDEXES, kindOf } from '../../core/schema/indexes.ts'
import { type IndexName, KEYS, SCHEMA, type TableName } from '../../core/schema/schema.ts'
import { byText, orderText, quoted, whereText } from '../sql.ts'
import { CODECS, POSTGRES, textArray } from './codec.ts'
import type { Value } from './driver.ts'

/** The first rows of the group `g`, behind a place where one is given. */
function scanText(index: IndexName, schema: string, behind: string, limit: string): string {
  const { table } = INDEXES[index]
  const where = whereText(POSTGRES, index, 'g')
  return `SELECT * FROM ${schema}.${quoted(table)} WHERE ${where} ${behind}
    ORDER BY ${byText(index)} LIMIT ${limit}`
}

/** Up to `$2` rows of a table behind the key `$1`, or with it, since the first key may be empty. */
export function rowsText(table: TableName, schema: string, withKey: boolean): string {
  const key = quoted(KEYS[table])
  const columns = CODECS[table].names.map((name) => `${quoted(name)}::text`).join(', ')
  return `SELECT ${columns} FROM ${schema}.${quoted(table)}
    WHERE ${key} ${withKey ? '>=' : '>'} $1 ORDER BY ${key} LIMIT $2`
}

/** The newest row of the group `$1` that is not among the newest `$2`. */
export function cutoffText(index: IndexName, schema: string): string {
  const { table, is } = INDEXES[index]
  const [order, key] = [orderText(is), quoted(KEYS[table])]
  const where = whereText(POSTGRES, index, 'g')
  return `SELECT (${order})::text, ${key}
    FROM ${schema}.${quoted(table)}, (SELECT $1::text AS g) AS asked WHERE ${where}
    ORDER BY ${order} DESC, ${key} DESC LIMIT 1 OFFSET $2`
}

/** Where to read in an index: a group, and behind which of its rows. */
export interface GroupPlace {
  group: string
  after: Cursor | undefined
}

/** How the order of an index is bound, and what nothing comes before. */
function orderBound(index: IndexName): { type: string; least: string } {
  const { table, is } = INDEXES[index]
  const kind = kindOf(SCHEMA[table], is.order)
  if (kind === 'text') return { type: 'text', least: '' }
  if (kind === 'real') return { type: 'float8', least: '-Infinity' }
  return { type: 'bigint', least: '-9223372036854775808' }
}

export const placesIn = (groups: Map<string, Omit<GroupPlace, 'group'>>): GroupPlace[] =>
  [...groups].map(([group, { after }]) => ({ group, after }))

/** The rows of such places, as `t`; `placeValues` are bound from `$first` on. */
export function fromPlaces(index: IndexName, schema: string, first: number): string {
  const order = orderText(INDEXES[index].is)
  const { type } = orderBound(index)
  const key = quoted(KEYS[INDEXES[index].table])
  const behind = `AND (${order}, ${key}) >= (from_order, from_key)`
  const lists = `$${first}::text[], $${first + 1}::${type}[], $${first + 2}::text[]`
  return `unnest(${lists}) AS wanted (g, from_order, from_key)
    CROSS JOIN LATERAL (${scanText(index, schema, behind, `$${first + 3}::bigint`)}) AS t`
}

export function placeValues(index: IndexName, places: GroupPlace[], limit: number): Value[] {
  const { least } = orderBound(index)
  const orders = places.map(({ after }) => String(after?.order ?? least))
  return [
    textArray(places.map(({ group }) => group)),
    textArray(orders),
    // No key comes between another and that with this behind it: no name has such a character.
    textArray(places.map(({ after }) => (after ? `${after.key}\u0001` : ''))),
    limit,
  ]
}
