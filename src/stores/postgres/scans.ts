import { KEYS } from '../../core/rows.ts'
import { INDEXES, type IndexName } from '../../core/view.ts'
import { quoted } from './codec.ts'

interface Scan {
  /** Which rows belong to the group `g`. */
  where: string
  order: string
  type: 'text' | 'bigint' | 'float8'
}

const IN_SCOPE = 'key > g || chr(10) AND key < g || chr(11)'
const OPEN = 'ready > 0 AND parked_on IS NULL'
const RESERVED = 'ended_at IS NULL AND path IS NOT NULL'
const inPath = (field: string) => `((path ->> '${field}') COLLATE "C")`
const BY_PROCESS = {
  order: `(((process ->> 'pid') || '/' || (process ->> 'start')) COLLATE "C")`,
  type: 'text',
} as const
const BY_BASE = { order: inPath('base'), type: 'text' } as const

/** The indexes of src/core/view.ts as SQL; each has an index of its own in the migrations. */
export const SCANS: Record<IndexName, Scan> = {
  ready_in: { where: IN_SCOPE, order: 'key', type: 'text' },
  ready_in_lane: { where: IN_SCOPE, order: 'key', type: 'text' },
  shares_in_turn: { where: 'turn = g', order: 'vt', type: 'float8' },
  shares_waiting: { where: 'waits', order: '"user"', type: 'text' },
  shares_special: { where: '(weight <> 1 OR max IS NOT NULL)', order: '"user"', type: 'text' },
  lanes_of: { where: `${OPEN} AND "user" = g`, order: 'head_rank', type: 'bigint' },
  lanes_of_group: { where: `${OPEN} AND group_key = g`, order: 'head_rank', type: 'bigint' },
  lanes_parked_at: {
    where: `parked_on || chr(10) || "user" = g`,
    order: 'head_rank',
    type: 'bigint',
  },
  parkings_of: { where: '"user" = g', order: '"limit"', type: 'text' },
  parkings_at: { where: `"limit" || chr(10) || turn = g`, order: 'vt', type: 'float8' },
  limits: { where: 'true', order: 'key', type: 'text' },
  limits_waking: { where: 'wakes = g', order: 'key', type: 'text' },
  dispatchers: { where: 'true', order: 'id', type: 'text' },
  host_settings: { where: 'part = g', order: 'key', type: 'text' },
  resources: { where: 'true', order: 'key', type: 'text' },
  worktrees: { where: 'true', order: 'begun_at', type: 'text' },
  worktrees_of: { where: 'task_id = g', order: 'begun_at', type: 'text' },
  queue_of: {
    where: `queue IS NOT NULL AND status = 'todo' AND coalesce("user", '') = g`,
    order: 'rank',
    type: 'bigint',
  },
  runs_newest: { where: 'dispatcher IS NOT NULL', order: '(-fence)', type: 'bigint' },
  runs_dispatched_by: { where: 'ended_at IS NULL AND dispatcher = g', order: 'id', type: 'text' },
  line_of: { where: 'name = g', order: 'rank', type: 'bigint' },
  line_end: {
    where: `name || chr(10) || priority::text = g`,
    order: '(-rank)',
    type: 'bigint',
  },
  line_several: { where: 'several AND name = g', order: 'rank', type: 'bigint' },
  dependents_of: { where: 'depends_on = g', order: 'task_id', type: 'text' },
  leases_by_expiry: { where: 'ended_at IS NULL', order: 'expires_ms', type: 'bigint' },
  leases_ended: { where: 'ended_at IS NOT NULL', order: 'expires_ms', type: 'bigint' },
  leases_held_by: { where: 'ended_at IS NULL AND holder = g', order: 'name', type: 'text' },
  leases_seated_at: { where: 'ended_at IS NULL AND seat = g', ...BY_PROCESS },
  reservations: { where: RESERVED, ...BY_BASE },
  reservations_in: { where: `${RESERVED} AND ${inPath('scope')} = g`, ...BY_BASE },
  reservations_of: { where: `${RESERVED} AND ${inPath('project')} = g`, ...BY_BASE },
  reservations_beside: { where: `${RESERVED} AND ${inPath('family')} = g`, ...BY_BASE },
  tickets: { where: 'true', order: 'rank', type: 'bigint' },
  tickets_due: { where: 'due_ms IS NOT NULL', order: 'due_ms', type: 'bigint' },
  tickets_seated_at: { where: 'seat = g', ...BY_PROCESS },
  tickets_of: { where: 'node = g', order: 'asked_ms', type: 'bigint' },
  tickets_under: { where: 'under_node = g', order: 'asked_ms', type: 'bigint' },
  tasks: { where: 'true', order: 'created_at', type: 'text' },
  tasks_with_status: { where: 'status = g', order: 'rank', type: 'bigint' },
  runs_of: {
    where: `id > g || '.' AND id < g || '/' AND task_id = g`,
    order: 'started_at',
    type: 'text',
  },
  landings_open: {
    where: `status IN ('waiting', 'landing') AND project = g`,
    order: 'rank',
    type: 'text',
  },
  landings_newest: { where: 'true', order: '(-seq)', type: 'bigint' },
  landings_of: { where: 'task_id = g', order: '(-seq)', type: 'bigint' },
  landings_ended: { where: 'ended_at IS NOT NULL', order: 'ended_at', type: 'text' },
  landing_rules: { where: 'true', order: 'project', type: 'text' },
  runs_ended: { where: 'ended_at IS NOT NULL', order: 'ended_at', type: 'text' },
  agents: { where: 'true', order: 'id', type: 'text' },
  agents_by_seen: { where: 'true', order: 'last_seen_ms', type: 'bigint' },
  tokens_by_end: {
    where: '(expires_ms IS NOT NULL OR revoked_at IS NOT NULL)',
    order: 'coalesce(expires_ms, 0)',
    type: 'bigint',
  },
  tokens: { where: 'true', order: 'created_at', type: 'text' },
  requests_by_age: { where: 'true', order: 'at_ms', type: 'bigint' },
  memories: { where: 'live', order: 'id', type: 'text' },
  memories_in: { where: 'live AND scope = g', order: 'key', type: 'text' },
  memories_by_age: { where: `heads::text <> '[]'`, order: 'updated_ms', type: 'bigint' },
  memories_by_expiry: {
    where: 'live AND expires_ms IS NOT NULL',
    order: 'expires_ms',
    type: 'bigint',
  },
  memories_deleted: {
    where: `NOT live AND heads::text <> '[]'`,
    order: 'updated_ms',
    type: 'bigint',
  },
  versions_saying: { where: 'kept AND hash = g', order: 'id', type: 'text' },
  versions_of: { where: 'memory_id = g', order: '(-version)', type: 'bigint' },
  conflicts: { where: 'status = g', order: 'opened_ms', type: 'bigint' },
  conflicts_of: { where: 'memory_id = g', order: 'opened_ms', type: 'bigint' },
  stats_of: { where: 'scale = g', order: 'start_at', type: 'text' },
  alerts: { where: 'true', order: 'since_at', type: 'text' },
  note_attempts: { where: 'state = g', order: 'next_ms', type: 'bigint' },
  vectors: { where: 'true', order: 'key', type: 'text' },
  duplicates_with: { where: 'status = g', order: '(-similarity)', type: 'float8' },
  duplicates_of: { where: 'a = g', order: 'id', type: 'text' },
  duplicates_to: { where: 'b = g', order: 'id', type: 'text' },
}

/** The first rows of the group `g`, behind a place where one is given. */
export function scanText(index: IndexName, schema: string, behind: string, limit: string): string {
  const { table } = INDEXES[index]
  const { where, order } = SCANS[index]
  return `SELECT * FROM ${schema}.${quoted(table)} WHERE ${where} ${behind}
    ORDER BY ${order}, ${quoted(KEYS[table])} LIMIT ${limit}`
}

/** The newest row of the group `$1` that is not among the newest `$2`. */
export function cutoffText(index: IndexName, schema: string): string {
  const { table } = INDEXES[index]
  const { where, order } = SCANS[index]
  const key = quoted(KEYS[table])
  return `SELECT (${order})::text, ${key}
    FROM ${schema}.${quoted(table)}, (SELECT $1::text AS g) AS asked WHERE ${where}
    ORDER BY ${order} DESC, ${key} DESC LIMIT 1 OFFSET $2`
}
