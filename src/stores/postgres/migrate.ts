import { readFileSync } from 'node:fs'
import { EMPTY_HEAD } from '../writer/chain.ts'
import { refuseNewerSchema } from '../successor.ts'
import type { Address } from './address.ts'
import type { Connection } from './driver.ts'
import { tableTexts } from './shape.ts'
import { type PostgresStatements, statementsFor } from './statements.ts'

/**
 * Numbered scripts that bring tables of an older program up to date, each applied once. A released
 * one is never edited; the next is added. New tables are made as the schema says.
 */
const SCRIPTS = [
  '001_begin.pg.sql',
  '002_reservations.pg.sql',
  '003_memory.pg.sql',
  '004_stats.pg.sql',
  '005_search.pg.sql',
  '006_recent.pg.sql',
  '007_lines.pg.sql',
  '008_retention.pg.sql',
  '009_token_scope.pg.sql',
  '010_hosts.pg.sql',
  '011_schema.pg.sql',
] as const

/** A script is known by its number, not by its place: some were written side by side. */
const numberOf = (script: string) => Number.parseInt(script, 10)

export const SCHEMA_VERSION = Math.max(...SCRIPTS.map(numberOf))

/**
 * Asks the catalogue as a table: `to_regclass` may still say no after waiting for the one who made
 * it, because it looks into a cache that is brought up to date when a table is locked.
 */
const FIND_SCHEMA = 'SELECT 1 FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1'
const FIND_TABLE = `SELECT 1 FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = $1 AND c.relname = 'migration'`

/** The version of our tables; 0 where there are none. Refuses those of a newer program. */
export async function schemaVersion(db: Connection, address: Address): Promise<number> {
  if ((await db.query(FIND_TABLE, [address.schema])).length === 0) return 0
  const [row] = await db.run(statementsFor(address).version)
  return refuseNewerSchema(address.shown, Number(row?.[0]), SCHEMA_VERSION)
}

/** Brings the schema up to this program's, under a lock; a current one is left as it is. */
export async function migrate(db: Connection, address: Address): Promise<void> {
  if ((await schemaVersion(db, address)) === SCHEMA_VERSION) return
  const statements = statementsFor(address)
  await db.run(statements.lockMigration)
  try {
    const found = await schemaVersion(db, address)
    if (found === 0) await begin(db, address, statements)
    else await applyScripts(db, address, found)
    await db.run('COMMIT')
  } catch (error) {
    await db.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** Applies the scripts behind number `from`. */
async function applyScripts(db: Connection, address: Address, from: number): Promise<void> {
  const { useSchema, migrated } = statementsFor(address)
  for (const name of SCRIPTS.filter((each) => numberOf(each) > from)) {
    const script = readFileSync(new URL(name, import.meta.url), 'utf8')
    await db.run(`${useSchema};\n${script}`)
    await db.query(migrated, [numberOf(name)])
  }
}

async function begin(
  db: Connection,
  address: Address,
  statements: PostgresStatements,
): Promise<void> {
  // Where somebody made the schema for us, we may not be allowed to.
  const made = await db.query(FIND_SCHEMA, [address.schema])
  if (made.length === 0) await db.run(statements.makeSchema)
  await db.run(statements.makeMigration)
  await db.run([statements.useSchema, ...tableTexts()].join(';\n'))
  await db.query(statements.migrated, [SCHEMA_VERSION])
  await db.query(statements.firstHead, [EMPTY_HEAD.hash])
  await db.query(statements.firstCheckpoint, [EMPTY_HEAD.hash])
}
