import { readFileSync } from 'node:fs'
import { event } from '../../core/schema/event.ts'
import { type AnyTable, SCHEMA, TABLES } from '../../core/schema/schema.ts'
import { makingTexts } from '../sql.ts'
import type { Database } from './driver.ts'
import { SQLITE } from './statements.ts'

/** Makes the tables and indexes of a new database, as the schema has them. */
export function makeTables(db: Database, version: number): void {
  db.exec(readFileSync(new URL('tables.sql', import.meta.url), 'utf8'))
  make(db, 'event', event, 'STRICT')
  for (const name of TABLES) {
    // With row ids where a row may be long: a tree of such keys would be mostly empty pages.
    make(db, name, SCHEMA[name], SCHEMA[name].isWide ? 'STRICT' : 'STRICT, WITHOUT ROWID')
  }
  db.exec(`PRAGMA user_version = ${version}`)
}

function make(db: Database, name: string, table: AnyTable, how: string): void {
  for (const text of makingTexts(SQLITE, name, table, how)) db.exec(text)
}

const PARTS = `SELECT type, name, sql FROM sqlite_schema
  WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' AND sql IS NOT NULL`
const COLUMNS = `SELECT name || ' ' || type || ' ' || "notnull" || ' ' || pk AS said
  FROM pragma_table_xinfo(?) ORDER BY name`
const KIND = 'SELECT type, wr, strict FROM pragma_table_list WHERE name = ?'

/** The tables, indexes and so on of a database, however they came to be, and what each is like. */
export function shapeOf(db: Database): Map<string, string> {
  const shape = new Map<string, string>()
  for (const { type, name, sql } of db.prepare(PARTS).all() as Record<string, string>[]) {
    const columns = type === 'table' ? db.prepare(COLUMNS).all(name!) : []
    const said = columns.map((column) => column['said'])
    const like = JSON.stringify(db.prepare(KIND).get(name!))
    const text = said.length > 0 ? `${like} ${said.join()}` : sql!.replaceAll(/[\s"()]/g, '')
    shape.set(`${type} ${name}`, text)
  }
  return shape
}
