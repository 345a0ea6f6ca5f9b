import { TABLES } from '../../core/schema/schema.ts'
import { type Address, lockKey } from './address.ts'
import type { Sought } from '../port.ts'
import { mentions, quoted } from '../sql.ts'
import { EVENT_CODEC, POSTGRES } from './codec.ts'
import { readMark } from './pooled.ts'
import { HEAD } from '../writer/chain.ts'

/** Tables whose rows are counted, in the order in which they are. */
export const COUNTED = [...TABLES, 'event']

const eventsFor =
  (schema: string) =>
  (sought: Sought = []) => {
    const is = sought.length > 0 && mentions(POSTGRES, sought, (i) => `$${i + 2}`)
    const within = is ? `AND position <= $1::bigint + $2::bigint AND ${is}` : ''
    return `SELECT ${EVENT_CODEC.names.map(quoted).join(', ')} FROM ${schema}.event
      WHERE position > $1 ${within} ORDER BY position LIMIT $2`
  }

/**
 * Statements of the PostgreSQL store that do not depend on what is asked. Text is put together from
 * names that the code owns and a schema that was checked, never from values; every value is bound.
 */
export function statementsFor(address: Address) {
  const { quoted: schema } = address
  const lock = (what: 'write' | 'migrate') =>
    `BEGIN ISOLATION LEVEL READ COMMITTED;
     SELECT pg_advisory_xact_lock(${lockKey(address.schema, what)})`
  const columns = HEAD.map((name) => `${quoted(name)}::text`).join(', ')
  // Beside the row: how often was committed, the database's clock, whether commits are durable, and
  // the version of the tables, which another program may have raised since the last transaction.
  // A statement of its own: it must begin when the lock is ours already.
  const head = `SELECT ${columns}, commits::text,
    (extract(epoch FROM clock_timestamp()) * 1000)::text,
    current_setting('synchronous_commit'), ${readMark},
    (SELECT max(number)::text FROM ${schema}.migration)
    FROM ${schema}.head`
  return {
    lock: lock('write'),
    beginWriting: `${lock('write')}; ${head}`,
    // Whoever has that lock or waits for it; the key is kept as two halves.
    line: `SELECT pid::text, virtualtransaction, granted::text FROM pg_catalog.pg_locks
      WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
      AND classid = ('${lockKey(address.schema, 'write')}'::bigint >> 32 & 4294967295)::oid
      AND objid = ('${lockKey(address.schema, 'write')}'::bigint & 4294967295)::oid`,
    beginReading: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${head}`,
    events: eventsFor(schema),
    checkpoint: `SELECT position, hash FROM ${schema}.checkpoint`,
    raiseEpoch: `UPDATE ${schema}.head SET epoch = $1, fences = 0, boot = '',
      commits = commits + 1`,
    counts: `SELECT ${COUNTED.map(
      (table) => `(SELECT count(*)::text FROM ${schema}.${quoted(table)})`,
    ).join(', ')}`,
    bytes: `SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::text
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind = 'r'`,
    // What ended meanwhile can be cleared away by nobody as long as such a transaction is open.
    leftOpen: `SELECT pid::text, extract(epoch FROM clock_timestamp() - xact_start)::int::text
      FROM pg_catalog.pg_stat_activity WHERE datname = current_database()
      AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '60 s'`,
    lockMigration: lock('migrate'),
    version: `SELECT coalesce(max(number), 0)::text FROM ${schema}.migration`,
    makeSchema: `CREATE SCHEMA ${schema}`,
    makeMigration: `CREATE TABLE ${schema}.migration
      (number bigint PRIMARY KEY, at timestamptz NOT NULL)`,
    useSchema: `SET LOCAL search_path TO ${schema}`,
    migrated: `INSERT INTO ${schema}.migration VALUES ($1, clock_timestamp())`,
    firstHead: `INSERT INTO ${schema}.head VALUES (1, 0, 0, 0, 0, $1, '', 0, 0, 0)`,
    firstCheckpoint: `INSERT INTO ${schema}.checkpoint VALUES (1, 0, $1)`,
    ...leaderFor(schema),
    ...searchingFor(schema),
  }
}

/** Where the leader is. */
function leaderFor(schema: string) {
  return {
    findLeader: `SELECT fence, address, secret, host, version FROM ${schema}.leader
      WHERE address <> ''`,
    putLeader: `INSERT INTO ${schema}.leader AS l (fence, address, secret, host, version)
      VALUES ($1, $2, $3, $4, $5) ON CONFLICT (one) DO UPDATE SET fence = excluded.fence,
      address = excluded.address, secret = excluded.secret, host = excluded.host,
      version = excluded.version WHERE l.fence < excluded.fence`,
    clearLeader: `UPDATE ${schema}.leader SET address = '', secret = '' WHERE fence = $1`,
  }
}

/** Notes by their words, and the vectors of those that live. */
function searchingFor(schema: string) {
  const vectors = `SELECT v.id, m.scope, x.bytes::text FROM m
    CROSS JOIN LATERAL json_array_elements_text(m.heads) AS h
    JOIN ${schema}.memory_version AS v ON v.id = m.id || chr(10) || h AND v.kept
    LEFT JOIN ${schema}.vector AS x ON x.key = $1::text || chr(10) || v.hash ORDER BY m.id`
  return {
    forgetWords: `DELETE FROM ${schema}.memory_words WHERE id = ANY ($1::text[])`,
    addWords: `INSERT INTO ${schema}.memory_words
      SELECT m.id, m.scope, setweight(${schema}.words_of(m.key), 'A')
        || setweight(${schema}.words_of(m.tags::text), 'B')
        || setweight(${schema}.words_of(coalesce((SELECT string_agg(left(t.content, 65536), ' ')
             FROM json_array_elements_text(m.heads) AS h
             JOIN ${schema}.memory_text AS t ON t.id = m.id || chr(10) || h), '')), 'C')
      FROM ${schema}.memory AS m WHERE m.live AND m.id = ANY ($1::text[])`,
    someNotes: `SELECT count(*) FROM (SELECT 1 FROM ${schema}.memory_words
      WHERE ($2::text IS NULL OR scope = $2::text) LIMIT $1::bigint) AS s`,
    hasWord: `SELECT word.n::text, found.id, found.rank::text
      FROM unnest($1::text[]) WITH ORDINALITY AS word(term, n)
      CROSS JOIN LATERAL (SELECT w.id,
          ts_rank('{0.1, 0.25, 0.5, 1.0}', w.words, plainto_tsquery('pg_catalog.english', term), 1)
            AS rank
        FROM ${schema}.memory_words AS w
        WHERE w.words @@ plainto_tsquery('pg_catalog.english', term)
          AND ($2::text IS NULL OR w.scope = $2::text) LIMIT $3::bigint) AS found`,
    vectors: `WITH m AS (SELECT id, scope, heads FROM ${schema}.memory WHERE live AND id > $2::text
      ORDER BY id LIMIT $3::bigint) ${vectors}`,
    vectorsOf: `WITH m AS (SELECT id, scope, heads FROM ${schema}.memory
      WHERE live AND id = ANY ($2::text[])) ${vectors}`,
    tallyMemory: `SELECT json_build_object(
      'notes', (SELECT count(*) FROM ${schema}.memory WHERE live),
      'behind', (SELECT count(*) FROM ${schema}.memory
        WHERE has_versions AND (updated_ms, id) > ($1::bigint, $2::text)),
      'waiting', count(*) FILTER (WHERE state = 'waiting'),
      'dead', count(*) FILTER (WHERE state = 'dead')) FROM ${schema}.note_attempt`,
  }
}

export type PostgresStatements = ReturnType<typeof statementsFor>
