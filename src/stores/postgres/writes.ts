import { type AnyRow, KEYS, SCHEMA, type TableName, TABLES } from '../../core/schema/schema.ts'
import type { Commit } from '../port.ts'
import { HEAD } from '../writer/chain.ts'
import { quoted } from '../sql.ts'
import { PostgresCodec, CODECS, EVENT_CODEC, textArray } from './codec.ts'
import type { Connection, Value } from './driver.ts'
import { sqlState, STATE } from './errors.ts'
import type { Known } from './known.ts'
import { nameOf } from './loads.ts'

interface Hot {
  codec: PostgresCodec<AnyRow>
  rest: (keyof AnyRow)[]
}

/**
 * The columns that claims change, and what follows from any. A row of which nothing else changed is
 * updated in these alone: its texts need not be sent again. Fixed sets, not those that happened to
 * change, so that there are few different statements and all are prepared.
 */
const HOT = new Map<TableName, Hot>()
for (const table of TABLES) {
  const { key, columns } = SCHEMA[table]
  const hot = Object.entries(columns).filter(([, { flags }]) => flags.isHot)
  if (hot.length === 0) continue
  const its = { [key]: columns[key]!, ...Object.fromEntries(hot) }
  const codec = new PostgresCodec<AnyRow>({ ...SCHEMA[table], columns: its })
  const rest = Object.keys(columns).filter((each) => !Object.hasOwn(its, each))
  HOT.set(table, { codec, rest: rest as (keyof AnyRow)[] })
}

interface Written extends Partial<Commit> {
  /** The number of the commit that it rests on. */
  commits?: number
}

/**
 * Writes a change with one statement: parts that insert or update, parts that delete, the events,
 * and last the head, if that is written with it. False when somebody else has committed since the
 * head was read, which the lock rules out as long as it is held.
 */
export async function write(
  db: Connection,
  schema: string,
  { changes = {}, events = [], forgets, begins, head, commits = 0 }: Written,
  known: Known,
): Promise<boolean> {
  const parts: string[] = []
  const values: Value[] = []
  for (const table of TABLES) {
    const { rows, hot, gone } = sides(table, changes[table], known)
    if (hot.length > 0) {
      const { codec } = HOT.get(table)!
      parts.push(updateText(schema, table, codec, values.length + 1))
      codec.bind(hot, values as string[])
    }
    if (rows.length > 0) {
      parts.push(insertText(schema, table, CODECS[table], values.length + 1))
      CODECS[table].bind(rows, values as string[])
    }
    if (gone.length > 0) {
      values.push(textArray(gone))
      parts.push(deleteText(schema, table, values.length))
    }
  }
  if (events.length > 0) {
    parts.push(insertText(schema, 'event', EVENT_CODEC, values.length + 1))
    EVENT_CODEC.bind(events, values as string[])
  }
  const moved = forgets ?? begins
  if (moved) {
    values.push(moved.position, moved.hash)
    parts.push(...(forgets ? forgetText : beginText)(schema, values.length - 1))
  }
  if (head) {
    const [last, ...names] = ['commits', ...HEAD].map((_, i) => `$${values.length + 1 + i}`)
    const set = names.map((at, i) => `${quoted(HEAD[i]!)} = ${at}`)
    values.push(commits, ...HEAD.map((name) => head[name]))
    parts.push(`UPDATE ${schema}.head SET ${set.join(', ')}, commits = ${last}::bigint + 1
      WHERE commits = ${last}::bigint RETURNING 1`)
  }
  if (parts.length === 0) return true
  const withs = parts.map((part, i) => `w${i} AS (${part})`)
  // Fails where no head was written, so that a COMMIT sent along behind it cannot take effect.
  const answer = head ? `SELECT 1 / count(*) FROM w${parts.length - 1}` : 'SELECT 1'
  const text = `WITH ${withs.join(',\n')}\n${answer}`
  try {
    await db.query(text, values, nameOf(text))
    return true
  } catch (error) {
    if (sqlState(error) === STATE.divisionByZero) return false
    throw error
  }
}

const beginText = (schema: string, first: number) => [
  `UPDATE ${schema}.checkpoint SET position = $${first}::bigint, hash = $${first + 1}::text`,
]

/** Only as far as the chain is the one that is meant: another may have taken its place. */
function forgetText(schema: string, first: number): string[] {
  const [position, hash] = [`$${first}::bigint`, `$${first + 1}::text`]
  const isMeant = `EXISTS (SELECT 1 FROM ${schema}.event AS e
    WHERE e.position = ${position} AND e.hash = ${hash})`
  return [
    `DELETE FROM ${schema}.event WHERE position <= ${position} AND ${isMeant}`,
    `UPDATE ${schema}.checkpoint SET position = ${position}, hash = ${hash}
      WHERE position < ${position} AND ${isMeant}`,
  ]
}

function sides(table: TableName, changed: Map<string, AnyRow | null> = new Map(), known: Known) {
  const rows: AnyRow[] = []
  const hot: AnyRow[] = []
  const gone: string[] = []
  const rest = HOT.get(table)?.rest
  for (const [key, row] of changed) {
    const before = known.committed(table, key)
    if (!row) gone.push(key)
    // Rows never change in place: what is kept is shared.
    else if (before && rest?.every((name) => before[name] === row[name])) hot.push(row)
    else rows.push(row)
  }
  return { rows, hot, gone }
}

/** Of rows that are there. An insert that meets them takes twice as long to find that out. */
function updateText(
  schema: string,
  table: TableName,
  codec: PostgresCodec<AnyRow>,
  first: number,
): string {
  const [key, ...names] = codec.stored.map(quoted)
  const [same, ...casts] = codec.casts()
  const sets = names.map((name, i) => `${name} = ${casts[i]}`)
  const from = unnested(codec, first)
  return `UPDATE ${schema}.${quoted(table)} AS t SET ${sets.join(', ')} FROM ${from}
    WHERE t.${key} = ${same}`
}

function insertText<Row>(
  schema: string,
  table: TableName | 'event',
  codec: PostgresCodec<Row>,
  first: number,
): string {
  const names = codec.stored.map(quoted)
  const into = `INSERT INTO ${schema}.${quoted(table)}`
  const from = `FROM ${unnested(codec, first)}`
  const casts = codec.casts().join(', ')
  if (table === 'event') return `${into} (${names.join(', ')}) SELECT ${casts} ${from}`
  const key = quoted(KEYS[table])
  const updates = names.filter((name) => name !== key).map((name) => `${name} = excluded.${name}`)
  return `${into} (${names.join(', ')}) SELECT ${casts} ${from}
    ON CONFLICT (${key}) DO UPDATE SET ${updates.join(', ')}`
}

const deleteText = (schema: string, table: TableName, at: number) =>
  `DELETE FROM ${schema}.${quoted(table)} AS t
    WHERE t.${quoted(KEYS[table])} = ANY ($${at}::text[])`

/** The rows that are bound from `$first` on, as `n`. */
function unnested<Row>(codec: PostgresCodec<Row>, first: number): string {
  const columns = codec.stored.map((_, i) => `c${i + 1}`)
  return `unnest(${codec.parameters(first).join(', ')}) AS n (${columns.join(', ')})`
}
