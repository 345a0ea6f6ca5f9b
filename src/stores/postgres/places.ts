import { KEYS } from '../../core/rows.ts'
import { type Cursor, INDEXES, type IndexName } from '../../core/view.ts'
import { quoted, textArray } from './codec.ts'
import type { Value } from './driver.ts'
import { SCANS, scanText } from './scans.ts'

/** Where to read in an index: a group, and behind which of its rows. */
export interface GroupPlace {
  group: string
  after: Cursor | undefined
}

/** Nothing comes before these. */
const LEAST = { text: '', bigint: '-9223372036854775808', float8: '-Infinity' }

export const placesIn = (groups: Map<string, Omit<GroupPlace, 'group'>>): GroupPlace[] =>
  [...groups].map(([group, { after }]) => ({ group, after }))

/** The rows of such places, as `t`; `placeValues` are bound from `$first` on. */
export function fromPlaces(index: IndexName, schema: string, first: number): string {
  const { order, type } = SCANS[index]
  const key = quoted(KEYS[INDEXES[index].table])
  const behind = `AND (${order}, ${key}) >= (from_order, from_key)`
  const lists = `$${first}::text[], $${first + 1}::${type}[], $${first + 2}::text[]`
  return `unnest(${lists}) AS wanted (g, from_order, from_key)
    CROSS JOIN LATERAL (${scanText(index, schema, behind, `$${first + 3}::bigint`)}) AS t`
}

export function placeValues(index: IndexName, places: GroupPlace[], limit: number): Value[] {
  const orders = places.map(({ after }) => String(after?.order ?? LEAST[SCANS[index].type]))
  return [
    textArray(places.map(({ group }) => group)),
    textArray(orders),
    // No key comes between another and that with this behind it: no name has such a character.
    textArray(places.map(({ after }) => (after ? `${after.key}\u0001` : ''))),
    limit,
  ]
}
