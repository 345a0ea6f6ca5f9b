import { indexOf, isNullable, kindOf } from '../core/schema/indexes.ts'
import { type AnyTable, type IndexName, KEYS, SCHEMA } from '../core/schema/schema.ts'
import type { RowCondition, IndexOf, Kind } from '../core/schema/table.ts'
import type { Sought } from './port.ts'

/** What a database says in its own words; all else about tables and indexes is said here. */
export interface Dialect {
  types: Record<Kind, string>
  /** The function that makes a character of its number. */
  char: string
  isTrue: (column: string) => string
  /** The function that tells where in a text another one stands. */
  finds: string
  /** A number as part of a longer text. */
  asText: (column: string) => string
}

/** Names that mean something to a database, as they are written; others need no marks. */
export const quoted = (name: string) => `"${name}"`

/** The columns that are in the database: those of rows, then those that follow from them. */
export const storedColumns = ({ columns, derived }: AnyTable) => [
  ...Object.keys(columns),
  ...Object.keys(derived),
]

const NEWLINE = 10

function conditionText(dialect: Dialect, condition: RowCondition): string {
  const column = quoted(condition.column)
  if (condition.is === 'true') return dialect.isTrue(column)
  return `${column} IS ${condition.is === 'null' ? 'NULL' : 'NOT NULL'}`
}

/** What rows are in an index at all: where all are, nothing. */
function filterText(dialect: Dialect, table: AnyTable, { rows = [], group = [], prefix }: IndexOf) {
  const said = rows.map((condition) => conditionText(dialect, condition))
  const nullable = prefix === undefined ? group.filter((name) => isNullable(table, name)) : []
  return [...said, ...nullable.map((name) => `${quoted(name)} IS NOT NULL`)]
}

/** The group of a row as one text. */
function groupText(dialect: Dialect, table: AnyTable, { group = [] }: IndexOf): string {
  const [first, ...others] = group.map(quoted)
  if (others.length === 0) return first ?? `''`
  const parts = group.map((name) => {
    const isText = kindOf(table, name) === 'text'
    return isText ? quoted(name) : dialect.asText(quoted(name))
  })
  return parts.join(` || ${dialect.char}(${NEWLINE}) || `)
}

export const orderText = ({ order, descends }: IndexOf) =>
  descends ? `(-${quoted(order)})` : quoted(order)

/** Which rows belong to the group that `name` stands for. */
export function whereText(dialect: Dialect, index: IndexName, name: string): string {
  const { table, is } = indexOf(index)
  const { prefix } = is
  const parts = filterText(dialect, SCHEMA[table], is)
  if (prefix !== undefined) {
    const [sign, next] = [0, 1].map((more) => `${dialect.char}(${prefix.charCodeAt(0) + more})`)
    const key = quoted(KEYS[table])
    parts.push(`${key} > ${name} || ${sign}`, `${key} < ${name} || ${next}`)
  }
  return [...parts, `${groupText(dialect, SCHEMA[table], is)} = ${name}`].join(' AND ')
}

/** The order of an index, ties broken by key. */
export function byText(index: IndexName): string {
  const { table, is } = indexOf(index)
  return is.order === KEYS[table] ? quoted(KEYS[table]) : `${orderText(is)}, ${quoted(KEYS[table])}`
}

/** The statements that make a table and its indexes; `how`: what is said about the whole of it. */
export function makingTexts(dialect: Dialect, name: string, table: AnyTable, how = ''): string[] {
  const columns = storedColumns(table).map((column) => {
    const type = dialect.types[kindOf(table, column)]
    const key = column === table.key ? ' PRIMARY KEY' : ''
    return `${quoted(column)} ${type}${key || isNullable(table, column) ? key : ' NOT NULL'}`
  })
  const making = `CREATE TABLE ${quoted(name)} (${columns.join(', ')}) ${how}`
  return [making, ...indexTexts(dialect, name, table)]
}

/** The statements that make the indexes of a table; what its key finds needs none. */
function indexTexts(dialect: Dialect, name: string, table: AnyTable): string[] {
  return Object.entries(table.indexes).flatMap(([index, is]) => {
    const filter = filterText(dialect, table, is)
    const { group = [], order, prefix } = is
    const isByKey = filter.length + group.length === 0 && order === table.key
    if (prefix !== undefined || isByKey) return []
    const grouped = group.length > 1 ? [`(${groupText(dialect, table, is)})`] : group.map(quoted)
    const columns = [...grouped, orderText(is), ...(order === table.key ? [] : [quoted(table.key)])]
    const where = filter.length > 0 ? ` WHERE ${filter.join(' AND ')}` : ''
    return `CREATE INDEX ${index} ON ${quoted(name)} (${columns.join(', ')})${where}`
  })
}

/** Events that may be about what is sought, their words standing for `parameter` in turn. */
export function mentions(dialect: Dialect, sought: Sought, parameter: (i: number) => string) {
  const columns = ['type', 'agent', 'lock', 'task'].map((name) => `coalesce(${quoted(name)}, '')`)
  const text = `'"' || ${columns.join(` || '" "' || `)} || '"' || ${dialect.asText('data')}`
  let i = 0
  const found = () => `${dialect.finds}(${text}, ${parameter((i += 1))}) > 0`
  return sought.map((words) => `(${words.map(found).join(' OR ')})`).join(' AND ')
}
