import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { migrate } from '../../src/stores/postgres/migrate.ts'
import { Sessions } from '../../src/stores/postgres/session.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { applyScripts, SCHEMA_VERSION } from '../../src/stores/sqlite/migrate.ts'
import { makeTables, shapeOf } from '../../src/stores/sqlite/shape.ts'
import { load } from '../fixtures/postgres_rows.ts'
import { folderOf } from '../fixtures/scene.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'

const RELEASES = readdirSync(folderOf('')).filter((name) => /^\d/.test(name))

const COLUMNS = `SELECT format('%s.%s %s %s %s', t.relname, a.attname,
    format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, a.attnotnull) AS said
  FROM pg_attribute AS a JOIN pg_class AS t ON t.oid = a.attrelid
  WHERE t.relnamespace = $1::regnamespace AND t.relkind = 'r' AND a.attnum > 0
    AND NOT a.attisdropped`
const INDEXES = `SELECT replace(indexdef, schemaname || '.', '') AS said
  FROM pg_indexes WHERE schemaname = $1`

/** Tables, columns, types and indexes, however they came to be. */
async function postgresShape(dir: string): Promise<string[]> {
  const { url, schema } = addressOf(postgresUrl(dir))
  const db = await new Sessions(addressOf(url), 30_000).open()
  await migrate(db, addressOf(postgresUrl(dir)))
  await db.close()
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  const columns = await client.query<{ said: string }>(COLUMNS, [schema])
  const indexes = await client.query<{ said: string }>(INDEXES, [schema])
  await client.end()
  return [...columns.rows, ...indexes.rows].map(({ said }) => said).toSorted()
}

describe('tables that scripts brought up to date are those that the schema makes', () => {
  test('in SQLite', () => {
    const [made, brought] = [0, 1].map(() => openDatabase(':memory:', { readOnly: false }))
    makeTables(made!, 0)
    applyScripts(brought!, 0, SCHEMA_VERSION)
    expect(shapeOf(brought!)).toEqual(shapeOf(made!))
    made!.close()
    brought!.close()
  })

  test.each(RELEASES)('in PostgreSQL, from %s', async (release) => {
    const told = JSON.parse(readFileSync(join(folderOf(release), 'scripts.json'), 'utf8')) as object
    const scripts = Object.keys(told).filter((path) => path.endsWith('.pg.sql'))
    const brought = temporaryFolder()
    const migration = scripts.map((_, i) => ({ number: i + 1, at: '2026-01-01T00:00:00Z' }))
    await load(brought, { migration }, scripts)
    expect(await postgresShape(brought)).toEqual(await postgresShape(temporaryFolder()))
  })
})

test('the example of a new column fits the tree, and takes five files', () => {
  const root = resolve(import.meta.dirname, '../..')
  const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
  const [, diff] = /```diff\n(.*?)```/s.exec(page)!
  const checked = { cwd: root, input: diff! }
  expect(() => execFileSync('git', ['apply', '--check', '-'], checked)).not.toThrow()
  expect(diff!.match(/^diff --git/gm)).toHaveLength(5)
})
