import { KEYS, TABLES, type TableName } from '../../core/rows.ts'
import { type Event, INDEXES, type IndexName } from '../../core/view.ts'
import { type ColumnKind, COLUMNS, EVENT_COLUMNS } from '../columns.ts'
import type { AnyRow } from '../port.ts'
import type { Database, Statement, Value } from './driver.ts'

/**
 * The statements of the SQLite store. Text is put together here from names that the code owns, never
 * from values; every value is bound.
 */
const SCANS: Record<IndexName, { where: string; order: string }> = {
  ready_in: { where: 'scope = ?', order: 'rank' },
  line_of: { where: 'name = ?', order: 'rank' },
  dependents_of: { where: 'depends_on = ?', order: 'task_id' },
  leases_by_expiry: { where: `ended_at IS NULL AND '' = ?`, order: 'expires_ms' },
  leases_held_by: { where: 'ended_at IS NULL AND holder = ?', order: 'name' },
  leases_seated_at: { where: 'ended_at IS NULL AND seat = ?', order: 'name' },
  tickets: { where: `'' = ?`, order: 'rank' },
  tickets_of: { where: 'node = ?', order: 'asked_ms' },
  tickets_under: { where: 'under_node = ?', order: 'asked_ms' },
  tasks: { where: `'' = ?`, order: 'created_at' },
  tasks_with_status: { where: 'status = ?', order: 'rank' },
  runs_of: { where: 'task_id = ?', order: 'started_at' },
  agents: { where: `'' = ?`, order: 'id' },
  requests_by_age: { where: `'' = ?`, order: 'at_ms' },
}

/** Rows written per statement. Fewer, larger statements are faster; the last one takes the rest. */
const ROWS_PER_STATEMENT = [32, 8, 1] as const

const quoted = (name: string) => `"${name}"`

interface Codec<Row> {
  encode(row: Row, into: Value[]): void
  decode(row: Record<string, unknown>): Row
}

/** Rows are never changed in place, so empty lists and objects can be shared. */
const EMPTY: Record<string, unknown> = { '[]': Object.freeze([]), '{}': Object.freeze({}) }

function codecOf<Row>(columns: Record<string, ColumnKind>): Codec<Row> {
  const all = Object.entries(columns)
  const special = all.filter(([, kind]) => kind === 'json' || kind === 'bool')
  return {
    encode(row, into) {
      const fields = row as unknown as Record<string, unknown>
      for (const [name, kind] of all) {
        const value = fields[name]
        if (value === null || value === undefined) into.push(null)
        else if (kind === 'json') into.push(JSON.stringify(value))
        else if (kind === 'bool') into.push(value ? 1 : 0)
        else into.push(value as Value)
      }
    },
    decode(row) {
      for (const [name, kind] of special) {
        const value = row[name]
        if (kind === 'bool') row[name] = value === 1
        else if (value !== null) row[name] = EMPTY[value as string] ?? JSON.parse(value as string)
      }
      return row as Row
    },
  }
}

const CODECS = Object.fromEntries(
  TABLES.map((table) => [table, codecOf<AnyRow>(COLUMNS[table])]),
) as Record<TableName, Codec<AnyRow>>
const EVENT_CODEC = codecOf<Event>(EVENT_COLUMNS)

/** Prepared statements of one connection, made when first used. */
export class Statements {
  private readonly db: Database
  private readonly prepared = new Map<string, Statement>()

  constructor(db: Database) {
    this.db = db
  }

  /** The statement known as `name`; its text is put together on first use only. */
  private once(name: string, sql: () => string): Statement {
    let statement = this.prepared.get(name)
    if (!statement) this.prepared.set(name, (statement = this.db.prepare(sql())))
    return statement
  }

  get(table: TableName, key: string): AnyRow | undefined {
    const sql = () => `SELECT * FROM ${table} WHERE ${KEYS[table]} = ?`
    const row = this.once(`get ${table}`, sql).get(key) as Record<string, unknown> | undefined
    return row && CODECS[table].decode(row)
  }

  getMany(table: TableName, keys: string[]): AnyRow[] {
    const statement = this.once(
      `get many ${table}`,
      () => `SELECT * FROM ${table} WHERE ${KEYS[table]} IN (SELECT value FROM json_each(?))`,
    )
    const rows = statement.all(JSON.stringify(keys)) as Record<string, unknown>[]
    return rows.map((row) => CODECS[table].decode(row))
  }

  scan(index: IndexName, group: string, after: Value[] | undefined, limit: number): AnyRow[] {
    const { table } = INDEXES[index]
    const statement = this.once(`scan ${index} ${after ? 'on' : ''}`, () => {
      const { where, order } = SCANS[index]
      const by = `${order}, ${KEYS[table]}`
      const behind = after ? `AND (${by}) > (?, ?)` : ''
      return `SELECT * FROM ${table} WHERE ${where} ${behind} ORDER BY ${by} LIMIT ?`
    })
    const rows = statement.all(group, ...(after ?? []), limit) as Record<string, unknown>[]
    return rows.map((row) => CODECS[table].decode(row))
  }

  isEmpty(table: TableName): boolean {
    const sql = () => `SELECT 1 FROM ${table} LIMIT 1`
    return this.once(`any ${table}`, sql).get() === undefined
  }

  write(table: TableName, rows: AnyRow[]): void {
    this.insert(table, Object.keys(COLUMNS[table]), rows, CODECS[table], () => {
      const rest = Object.keys(COLUMNS[table]).filter((column) => column !== KEYS[table])
      const updates = rest.map((column) => `${quoted(column)} = excluded.${quoted(column)}`)
      return ` ON CONFLICT (${KEYS[table]}) DO UPDATE SET ${updates.join(', ')}`
    })
  }

  append(events: Event[]): void {
    this.insert('event', Object.keys(EVENT_COLUMNS), events, EVENT_CODEC, () => '')
  }

  private insert<Row>(
    table: string,
    columns: string[],
    rows: Row[],
    codec: Codec<Row>,
    tail: () => string,
  ): void {
    let from = 0
    for (const size of ROWS_PER_STATEMENT) {
      if (rows.length - from < size) continue
      const statement = this.once(`insert ${size} ${table}`, () => {
        const one = `(${columns.map(() => '?').join(', ')})`
        const values = Array(size).fill(one).join(', ')
        return `INSERT INTO ${table} (${columns.map(quoted).join(', ')}) VALUES ${values}${tail()}`
      })
      for (; rows.length - from >= size; from += size) {
        const bound: Value[] = []
        for (let i = from; i < from + size; i += 1) codec.encode(rows[i]!, bound)
        statement.run(...bound)
      }
    }
  }

  remove(table: TableName, keys: string[]): void {
    const statement = this.once(
      `remove ${table}`,
      () => `DELETE FROM ${table} WHERE ${KEYS[table]} IN (SELECT value FROM json_each(?))`,
    )
    statement.run(JSON.stringify(keys))
  }

  /** Statements that are written out by hand, for what happens once per batch or less. */
  sql(text: string): Statement {
    return this.once(text, () => text)
  }

  events(after: number, limit: number): Event[] {
    const sql = 'SELECT * FROM event WHERE position > ? ORDER BY position LIMIT ?'
    const rows = this.sql(sql).all(after, limit) as Record<string, unknown>[]
    return rows.map((row) => EVENT_CODEC.decode(row))
  }
}
