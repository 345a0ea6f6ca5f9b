import type { Settings } from '../queue/rows.ts'
import { text, int, real, bool, json, instant, isTrue, type RowOf, table } from './table.ts'

/** The queue: who is next, and what may run at once. */

/** One user's account in the queue: what runs, what waits, what comes next. */
export const share = table({
  key: 'user',
  columns: {
    /** Empty for tasks that have no user. */
    user: text(),
    weight: real(),
    /** Its own limit; null: the queue's default. */
    max: int().orNull,
    /** Locks that count against the limit: `task:42`, or `user:alice` taken by hand. */
    running: json<string[]>().hot,
    /** Enqueued tasks in `todo`, and how many of them have a high priority. */
    pending: int().hot,
    pending_high: int().hot,
    /** Whether any are pending; changes less often than how many. */
    waits: bool().hot,
    /** When its newest task was enqueued; the next comes at least a millisecond later. */
    last_ms: instant().hot,
    /** Virtual time: service received, by weight. The share furthest behind is served next. */
    vt: real().hot,
    /** Length of its runs, averaged; null until one has ended. */
    run_ms: real().orNull.hot,
    paused: bool(),
    /** The group that was started last: its ready tasks come next. */
    group: text().orNull,
    /** Lanes that have a ready task and are not parked. */
    lanes: int().hot,
    next_lane: text().orNull.hot,
    next_task: text().orNull.hot,
    next_high: bool().hot,
    /** In which index this share stands: it could start `next_task` now; null: it could not. */
    turn: text<'high' | 'normal'>().orNull.hot,
  },
  derived: { special: { bool: (row) => row.weight !== 1 || row.max !== null } },
  indexes: {
    shares_in_turn: { group: ['turn'], order: 'vt' },
    shares_waiting: { rows: [isTrue('waits')], order: 'user' },
    /** Those that differ from what everybody has: the configuration takes them back. */
    shares_special: { rows: [isTrue('special')], order: 'user' },
  },
})
export type Share = RowOf<typeof share>

/** Ready tasks of one user, project and group: what can be parked together on a full limit. */
export const lane = table({
  key: 'key',
  columns: {
    key: text(),
    user: text(),
    project: text().orNull,
    group: text().orNull,
    /** User and group together, to find the tasks that follow each other. */
    group_key: text().orNull,
    ready: int().hot,
    head_rank: instant().orNull.hot,
    head_task: text().orNull.hot,
    head_high: bool().hot,
    /** The limit that had no room when this lane was looked at. */
    parked_on: text().orNull.hot,
  },
  derived: { open: { bool: (row) => row.ready > 0 && row.parked_on === null } },
  indexes: {
    lanes_of: { rows: [isTrue('open')], group: ['user'], order: 'head_rank' },
    lanes_of_group: { rows: [isTrue('open')], group: ['group_key'], order: 'head_rank' },
    lanes_parked_at: { group: ['parked_on', 'user'], order: 'head_rank' },
  },
})
export type Lane = RowOf<typeof lane>

/** A user whose lanes are parked on one limit, and when its turn there is. */
export const parking = table({
  key: 'key',
  columns: {
    key: text(),
    limit: text(),
    user: text(),
    /** The user's virtual time when last looked at; it may have risen since. */
    vt: real(),
    /** What the best of its lanes there would start. */
    turn: text<'high' | 'normal'>(),
  },
  indexes: {
    parkings_of: { group: ['user'], order: 'limit' },
    parkings_at: { group: ['limit', 'turn'], order: 'vt' },
  },
})
export type Parking = RowOf<typeof parking>

/**
 * A counter that claims take from: of a project, a group, or the pool of all. Lanes of a project
 * that no dispatcher serves are parked on `unserved:NAME`, which is paused until one does.
 */
export const limit = table({
  key: 'key',
  columns: {
    key: text(),
    max: int().orNull,
    used: int(),
    paused: bool(),
    /** How many lanes are parked here. */
    parked: int(),
    /** Which of the parked lanes could be woken: there is room, or agents may take them. */
    wakes: text<'room' | 'unserved'>().orNull,
  },
  indexes: { limits: { order: 'key' }, limits_waking: { group: ['wakes'], order: 'key' } },
})
export type Limit = RowOf<typeof limit>

/** The queue as a whole; there is one row. */
export const queue = table({
  key: 'key',
  columns: {
    key: text<'queue'>(),
    /** Start tag of the last start: nobody joins with less. */
    vclock: real(),
    /** High-priority starts in a row while others waited. */
    high_streak: int(),
    paused: bool(),
    /** How many tasks of one user may run at once, unless its share says otherwise. */
    user_max: int().orNull,
    lock_timeout_ms: int(),
    /** Length of all runs, averaged: the estimate for a user without a history. */
    run_ms: real().orNull,
  },
})
export type Queue = RowOf<typeof queue>

/** A program that starts runs on one host. It lives as long as its lease does. */
export const dispatcher = table({
  key: 'id',
  columns: {
    /** The name of the lock that makes it the only one on its host. */
    id: text(),
    host: text(),
    pid: int(),
    slots_max: int(),
    projects: json<string[]>(),
    started_at: text(),
  },
  indexes: { dispatchers: { order: 'id' } },
})
export type DispatcherRow = RowOf<typeof dispatcher>

/**
 * What one config.json sets for all who use the store. Its source is a host; or `config.json` where
 * no other host can reach the store, and there is only one.
 */
export const host_settings = table({
  key: 'key',
  columns: {
    key: text(),
    part: text<'queue' | 'memory'>(),
    source: text(),
    settings: json<Settings>(),
    /** When that file was read last. */
    read_ms: instant(),
  },
  indexes: { host_settings_of: { group: ['part'], order: 'key' } },
})
export type HostSettings = RowOf<typeof host_settings>

/** What a host lends to runs, one value each: ports, or databases. A limit counts how many. */
export const resource = table({
  key: 'key',
  columns: {
    /** Also the key of its limit. */
    key: text(),
    host: text(),
    name: text(),
    /** As the configuration names them, and whose runs are lent one. */
    offered: json<string[]>(),
    projects: json<string[]>(),
    /** Which value is lent for which lock; one that is no longer offered is let run out. */
    lent: json<Record<string, string>>(),
  },
  indexes: { resources: { order: 'key' } },
})
export type Resource = RowOf<typeof resource>
