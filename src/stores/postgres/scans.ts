import { INDEXES } from '../../core/schema/indexes.ts'
import { type IndexName, KEYS } from '../../core/schema/schema.ts'
import { byText, orderText, quoted, whereText } from '../sql.ts'
import { POSTGRES } from './codec.ts'

/** The first rows of the group `g`, behind a place where one is given. */
export function scanText(index: IndexName, schema: string, behind: string, limit: string): string {
  const { table } = INDEXES[index]
  const where = whereText(POSTGRES, index, 'g')
  return `SELECT * FROM ${schema}.${quoted(table)} WHERE ${where} ${behind}
    ORDER BY ${byText(index)} LIMIT ${limit}`
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
