import { KEYS, type TableName } from '../../core/schema/schema.ts'

/**
 * The statement for the next rows of a table, in the order of keys, as SQLite spells it. A key may
 * be empty, so the first rows are not behind any.
 */
export function readText(table: TableName, after: string | undefined): string {
  const key = `"${KEYS[table]}"`
  const behind = after === undefined ? '>=' : '>'
  return `SELECT * FROM "${table}" AS t WHERE ${key} ${behind} ?1 ORDER BY ${key} LIMIT ?2`
}
