import { INDEXES } from '../../core/schema/indexes.ts'
import {
  type AnyRow,
  type IndexName,
  KEYS,
  type TableName,
  TABLES,
} from '../../core/schema/schema.ts'
import { TABLE_AHEAD } from '../../core/ahead.ts'
import { quoted } from '../sql.ts'
import { CODECS, textArray } from './codec.ts'
import type { Connection, TextRow, Value } from './driver.ts'
import type { Known } from './known.ts'
import { fromPlaces, type GroupPlace, placesIn, placeValues } from './scans.ts'
import { mostOf, type Wanted } from './wanted.ts'

/** Known to be empty, they spare every claim several looks for what is not there. */
const OFTEN_EMPTY = TABLES.filter((table) => TABLE_AHEAD[table]?.often_empty)

/** One part of the statement that loads: its text, and what to do with the rows it finds. */
interface Branch {
  table: TableName
  /** `$1` and so on stand for `values`; `cols` for the columns of the table, as text. */
  text: (cols: string, schema: string, first: number) => string
  values: Value[]
}

/**
 * Loads rows by key and groups of indexes, any number of either, in one round trip: a UNION ALL
 * with a branch per table and index. Rows come as text, in as many columns as the widest has.
 */
export async function load(
  db: Connection,
  schema: string,
  wanted: Wanted,
  known: Known,
): Promise<void> {
  const branches = [...rowBranches(wanted), ...groupBranches(wanted), ...pageBranches(wanted)]
  if (branches.length === 0) return
  const values = branches.flatMap((branch) => branch.values)
  const asks = known.asksForEmpty
  const text = textsOf(branches, schema, asks).join('\nUNION ALL\n')
  const found = await db.query(text, values, nameOf(text))
  if (asks) known.learnEmpty(OFTEN_EMPTY.filter((_, i) => found.at(-1)![i + 1] === 'true'))
  const loaded = (asks ? found.slice(0, -1) : found).map((each) => decoded(each, branches))
  known.learn(wanted, loaded)
}

function textsOf(branches: Branch[], schema: string, asks: boolean): string[] {
  const width = Math.max(
    OFTEN_EMPTY.length,
    ...branches.map(({ table }) => CODECS[table].names.length),
  )
  let first = 1
  const texts = branches.map(({ table, text, values }, i) => {
    const columns = CODECS[table].names.map((name) => `t.${quoted(name)}::text`)
    while (columns.length < width) columns.push('NULL')
    const part = text(`${i}, ${columns.join(', ')}`, schema, first)
    first += values.length
    return part
  })
  if (asks) texts.push(emptyText(schema, width))
  return texts
}

/** Which tables have no row: the last branch, so its row comes last. */
function emptyText(schema: string, width: number): string {
  const columns = OFTEN_EMPTY.map(
    (table) => `(NOT EXISTS (SELECT 1 FROM ${schema}.${quoted(table)}))::text`,
  )
  while (columns.length < width) columns.push('NULL')
  return `SELECT -1, ${columns.join(', ')}`
}

function decoded(values: TextRow, branches: Branch[]): { table: TableName; row: AnyRow } {
  const { table } = branches[Number(values[0])]!
  return { table, row: CODECS[table].decode(values, 1) }
}

function rowBranches({ keys }: Wanted): Branch[] {
  return [...keys].map(([table, wanted]) => ({
    table,
    text: (cols, schema, first) =>
      `SELECT ${cols} FROM ${schema}.${quoted(table)} AS t
        WHERE t.${quoted(KEYS[table])} = ANY ($${first}::text[])`,
    values: [textArray([...wanted])],
  }))
}

const groupBranches = ({ groups }: Wanted): Branch[] =>
  [...groups].map(([index, wanted]) => placesBranch(index, placesIn(wanted), mostOf(wanted)))

/** All pages of an index in one branch: a rule that looks for paths wants hundreds of them. */
function pageBranches(wanted: Wanted): Branch[] {
  const pages = [...wanted.pages.values()]
  const indexes = [...new Set(pages.map(({ index }) => index))]
  return indexes.map((index) => {
    const its = pages.filter((page) => page.index === index)
    return placesBranch(index, its, Math.max(...its.map(({ limit }) => limit)))
  })
}

function placesBranch(index: IndexName, places: GroupPlace[], limit: number): Branch {
  return {
    table: INDEXES[index].table,
    text: (cols, schema, first) => `SELECT ${cols} FROM ${fromPlaces(index, schema, first)}`,
    values: placeValues(index, places, limit),
  }
}

/** Statements that are likely to come again get a name; beyond so many, they are planned anew. */
const NAMED_MAX = 300
const names = new Map<string, string>()

export function nameOf(text: string): string | undefined {
  let name = names.get(text)
  if (name === undefined && names.size < NAMED_MAX) {
    names.set(text, (name = `leasehold_${names.size}`))
  }
  return name
}
