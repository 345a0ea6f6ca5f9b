import type { TableName } from '../../core/rows.ts'

/** Rows behind a key, in the order of keys, as SQLite and PostgreSQL both read it. */
const BEHIND: Record<TableName, string> = {
  task: 'SELECT * FROM task AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  dependency: 'SELECT * FROM dependency AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  ready: 'SELECT * FROM ready AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  lease: 'SELECT * FROM lease AS t WHERE name > ?1 ORDER BY name LIMIT ?2',
  run: 'SELECT * FROM run AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  ticket: 'SELECT * FROM ticket AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  place: 'SELECT * FROM place AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  agent: 'SELECT * FROM agent AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  request: 'SELECT * FROM request AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  token: 'SELECT * FROM token AS t WHERE hash > ?1 ORDER BY hash LIMIT ?2',
  share: 'SELECT * FROM share AS t WHERE "user" > ?1 ORDER BY "user" LIMIT ?2',
  lane: 'SELECT * FROM lane AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  parking: 'SELECT * FROM parking AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  limit: 'SELECT * FROM "limit" AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  queue: 'SELECT * FROM queue AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  dispatcher: 'SELECT * FROM dispatcher AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  host_settings: 'SELECT * FROM host_settings AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  memory: 'SELECT * FROM memory AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  memory_version: 'SELECT * FROM memory_version AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  memory_text: 'SELECT * FROM memory_text AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  memory_conflict: 'SELECT * FROM memory_conflict AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
  memory_usage: 'SELECT * FROM memory_usage AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  memory_settings: 'SELECT * FROM memory_settings AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  stat: 'SELECT * FROM stat AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  alert: 'SELECT * FROM alert AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  background_job: 'SELECT * FROM background_job AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  vector: 'SELECT * FROM vector AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  embedding: 'SELECT * FROM embedding AS t WHERE key > ?1 ORDER BY key LIMIT ?2',
  duplicate: 'SELECT * FROM duplicate AS t WHERE id > ?1 ORDER BY id LIMIT ?2',
}

/** The statement for the next rows. A key may be empty, so the first rows are not behind any. */
export function readText(table: TableName, after: string | undefined): string {
  return after === undefined ? BEHIND[table].replace('>', '>=') : BEHIND[table]
}

/** The same for PostgreSQL; rows come as JSON, by name, whatever the order of columns is there. */
export function readJsonText(table: TableName, after: string | undefined): string {
  return readText(table, after).replace('*', 'row_to_json(t)::text').replaceAll('?', '$')
}
