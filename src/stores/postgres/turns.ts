import { scopeOfLane } from '../../core/queue/lane.ts'
import { lockOf } from '../../core/locks/lease.ts'
import { groupLimit, projectLimit } from '../../core/queue/limit.ts'
import type { Lane, Parking, Share } from '../../core/queue/rows.ts'
import { keyOf, type TableName } from '../../core/rows.ts'
import { userLock } from '../../core/queue/share.ts'
import type { IndexName } from '../../core/view.ts'
import type { AnyRow } from '../port.ts'
import { textArray } from './codec.ts'
import type { Value } from './driver.ts'
import type { Wanted } from './known.ts'
import { scanText } from './scans.ts'

/** Of each user, lane, line: as many rows as a rule looks at before it asks for more. */
const EACH = 4

const FROM_HERE = ['shares_in_turn', 'parkings_at'] as const

/** Whether somebody wants to know whose turn it is, or who is next at a limit. */
export function wantsTurns({ groups }: Wanted): boolean {
  return FROM_HERE.some((index) => groups.has(index))
}

interface TurnBranch {
  table: TableName
  /** Where its rows come from; `t` are its columns. */
  from: string
}

/**
 * What claims will look at, found by the server from one row to the next: those whose turn it is,
 * those parked at limits, their lanes, and of each lane the next task with its lock and its line.
 * The rule asks for one after the other; without this, each would be a round trip.
 */
export function turnParts(schema: string, { groups }: Wanted, first: number) {
  const scan = (index: IndexName, limit: string) => scanText(index, schema, '', limit)
  const each = (groupsOf: string, index: IndexName) =>
    `(${groupsOf}) AS g0 CROSS JOIN LATERAL (${scan(index, `${EACH}`)}) AS t`
  const root = (index: IndexName, at: number) => `SELECT t.* FROM unnest($${at}::text[]) AS g
    CROSS JOIN LATERAL (${scan(index, `$${at + 1}::bigint`)}) AS t`
  const withs = [
    `turn_s AS MATERIALIZED (${root('shares_in_turn', first)})`,
    `turn_p AS MATERIALIZED (${root('parkings_at', first + 2)})`,
    `turn_u AS MATERIALIZED (SELECT "user" AS g FROM turn_s UNION SELECT "user" FROM turn_p)`,
    `turn_l AS MATERIALIZED (
      SELECT t.* FROM ${schema}.lane AS t WHERE t.key = ANY (ARRAY(SELECT next_lane FROM turn_s))
      UNION SELECT t.* FROM ${each('SELECT g FROM turn_u', 'lanes_of')}
      UNION SELECT t.* FROM ${each('SELECT key AS g FROM turn_p', 'lanes_parked_at')})`,
  ]
  const branches: TurnBranch[] = [
    { table: 'share', from: 'turn_s AS t' },
    { table: 'share', from: byKey(schema, 'share', '"user"', 'SELECT "user" FROM turn_p') },
    { table: 'parking', from: 'turn_p AS t' },
    { table: 'parking', from: each('SELECT g FROM turn_u', 'parkings_of') },
    { table: 'lane', from: 'turn_l AS t' },
    { table: 'lane', from: each(PARKED_HERE, 'lanes_parked_at') },
    { table: 'task', from: byKey(schema, 'task', 'id', 'SELECT head_task FROM turn_l') },
    { table: 'lease', from: byKey(schema, 'lease', 'name', LOCKS) },
    { table: 'ready', from: each(SCOPES, 'ready_in_lane') },
    { table: 'place', from: each(LOCKS, 'line_of') },
    { table: 'limit', from: byKey(schema, 'limit', 'key', LIMITS) },
  ]
  const values: Value[] = FROM_HERE.flatMap((index) => {
    const wanted = groups.get(index) ?? new Map<string, number>()
    return [textArray([...wanted.keys()]), Math.max(0, ...wanted.values())]
  })
  return { withs, branches, values }
}

const LOCKS = `SELECT '${lockOf('')}' || head_task AS g FROM turn_l
  UNION SELECT '${userLock('')}' || g FROM turn_u`
const LIMITS = `SELECT '${projectLimit('')}' || project FROM turn_l
  UNION SELECT '${groupLimit('')}' || "group" FROM turn_l`
const SCOPES = `SELECT 'lane' || chr(10) || key AS g FROM turn_l`
const PARKED_HERE = `SELECT DISTINCT '${projectLimit('')}' || project || chr(10) || "user" AS g
  FROM turn_l WHERE project IS NOT NULL`

function byKey(schema: string, table: TableName, key: string, keys: string): string {
  return `${schema}."${table}" AS t WHERE t.${key} = ANY (ARRAY(${keys}))`
}

/** What `turnParts` has asked for, said by the rows it found: so what is not there is missing. */
export function foundTurns(rowsOf: (branch: number) => AnyRow[]): Wanted {
  const keys = new Map<TableName, Set<string>>()
  const groups = new Map<IndexName, Map<string, number>>()
  const key = (table: TableName, name: string | null) => {
    if (name !== null) keys.set(table, (keys.get(table) ?? new Set()).add(name))
  }
  const group = (index: IndexName, name: string) => {
    groups.set(index, (groups.get(index) ?? new Map<string, number>()).set(name, EACH))
  }
  const lock = (name: string) => {
    key('lease', name)
    group('line_of', name)
  }
  const user = (name: string) => {
    group('lanes_of', name)
    group('parkings_of', name)
    lock(userLock(name))
  }
  for (const share of rowsOf(0) as Share[]) {
    user(share.user)
    key('lane', share.next_lane)
  }
  for (const parking of rowsOf(2) as Parking[]) {
    user(parking.user)
    key('share', parking.user)
    group('lanes_parked_at', parking.key)
  }
  for (const lane of rowsOf(4) as Lane[]) {
    key('task', lane.head_task)
    if (lane.head_task !== null) lock(lockOf(lane.head_task))
    group('ready_in_lane', scopeOfLane(lane.key))
    if (lane.group !== null) key('limit', groupLimit(lane.group))
    if (lane.project === null) continue
    key('limit', projectLimit(lane.project))
    group('lanes_parked_at', keyOf(projectLimit(lane.project), lane.user))
  }
  return { keys, groups, pages: new Map() }
}
