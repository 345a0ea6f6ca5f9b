import { type AnyRow, KEYS, type TableName, TABLES } from '../../core/schema/schema.ts'
import type { Commit, Head } from '../port.ts'
import { quoted } from '../sql.ts'
import { type PostgresCodec, CODECS, EVENT_CODEC, textArray } from './codec.ts'
import type { Connection, Value } from './driver.ts'
import { sqlState, STATE } from './errors.ts'
import { hotCodec, isHotChange } from './hot.ts'
import type { Known } from './known.ts'
import { nameOf } from './loads.ts'

/** The columns of the head row; `commits` is ours, and counts up by itself. */
export const HEAD: (keyof Omit<Head, 'clock_ms'>)[] = [
  'epoch',
  'fences',
  'task_number',
  'position',
  'hash',
  'boot',
  'offset_ms',
  'last_ms',
]

interface Written extends Commit {
  /** The number of the commit that it rests on. */
  commits: number
}

/**
 * Writes a whole batch with one statement: parts that insert or update, parts that delete, the
 * events, and last the head. False when somebody else has committed since the head was read, which
 * the lock rules out as long as it is held.
 */
export async function write(
  db: Connection,
  schema: string,
  { changes, events, forgets, head, commits }: Written,
  known: Known,
): Promise<boolean> {
  const parts: string[] = []
  // The number of this commit comes first: so `$1` is known to all parts.
  const values: Value[] = [commits + 1]
  for (const table of TABLES) {
    const { rows, hot, gone } = sides(table, changes[table], known)
    const codec = hotCodec(table)
    if (codec && hot.length > 0) {
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
  if (forgets) {
    values.push(forgets.position, forgets.hash)
    parts.push(...forgetText(schema, values.length - 1))
  }
  const set = HEAD.map((name, i) => `${quoted(name)} = $${values.length + 1 + i}`)
  for (const name of HEAD) values.push(head[name])
  parts.push(`UPDATE ${schema}.head SET ${set.join(', ')}, commits = $1::bigint
    WHERE commits = $1::bigint - 1 RETURNING 1`)
  const withs = parts.map((part, i) => `w${i} AS (${part})`)
  // Fails where no head was written, so that a COMMIT sent along behind it cannot take effect.
  const text = `WITH ${withs.join(',\n')}\nSELECT 1 / count(*) FROM w${parts.length - 1}`
  try {
    await db.query(text, values, nameOf(text))
    return true
  } catch (error) {
    if (sqlState(error) === STATE.divisionByZero) return false
    throw error
  }
}

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
  for (const [key, row] of changed) {
    const before = known.committed(table, key)
    if (!row) gone.push(key)
    else if (before && isHotChange(table, before, row)) hot.push(row)
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
