import type { Lane, Resource, Share } from '../../src/core/schema/queue.ts'
import type { Ready, Task } from '../../src/core/schema/task.ts'
import { keyOf } from '../../src/core/rows.ts'
import { mustHold } from './broken.ts'
import { byRank, countersOf, laneKey, type Look, QueueRows } from './queue_look.ts'

/** How much of each limit was taken at the last look: one that was lowered may stay exceeded. */
export type UsedBefore = Map<string, number>

/** Limits were changed since the last look: something may have started before one was lowered. */
export const LIMITS_CHANGED = 'changed'

/**
 * Everything that the queue writes down twice, worked out once more from tasks and leases alone:
 * counters, lanes, shares and turns. S8: and no limit is exceeded by a claim.
 */
export function checkQueue(look: Look, before: UsedBefore = new Map()): void {
  const rows = new QueueRows(look)
  checkLimits(rows, before)
  checkTerms(rows)
  for (const user of rows.users) checkShare(rows, user)
  checkLanes(rows)
  checkWaking(rows)
}

function checkLimits(rows: QueueRows, before: UsedBefore): void {
  const now = new Map<string, number>()
  const judge = (key: string, used: number, max: number | null) => {
    now.set(key, used)
    const grew = used > (before.get(key) ?? 0) && !before.has(LIMITS_CHANGED)
    mustHold('S8', max === null || used <= max || !grew, () => `${key} has ${used} of ${max}`)
  }
  for (const user of rows.users) {
    const running = rows.runningOf(user)
    judge(`user:${user}`, running.length, rows.maxOf(user))
    const kept = rows.shares.get(user)?.running ?? []
    mustHold('S8', same(kept, running), () => {
      return `share ${user} counts ${kept.join()} but leases say ${running.join()}`
    })
  }
  for (const { key, used, max } of rows.limits.values()) {
    const held = rows.usedOf(key)
    judge(key, held, max)
    mustHold('S8', used === held, () => `${key} counts ${used} but leases say ${held}`)
  }
  before.delete(LIMITS_CHANGED)
  for (const [key, used] of now) before.set(key, used)
}

const same = (a: string[], b: string[]) => a.toSorted().join() === b.toSorted().join()

/** A run in progress counts against each limit of its task, exactly once, as long as it lasts. */
function checkTerms({ tasks, look }: QueueRows): void {
  const resources = look.rows<Resource>('resources', '')
  for (const task of tasks) {
    if (task.run_id === null) continue
    const lease = look.get('lease', `task:${task.id}`)
    const limits = lease?.terms?.limits ?? []
    const lends = resources.filter(({ lent }) => Object.values(lent).includes(`task:${task.id}`))
    const all = [...countersOf(task), ...lends.map(({ key }) => key)]
    mustHold('S8', same(limits, all), () => {
      return `task ${task.id} runs for ${all.join()} but counts ${limits.join()}`
    })
    // A value that two have is recorded for one of them only.
    for (const { name, lent } of lends) {
      const value = lease?.terms?.lent?.[name] ?? ''
      mustHold('R54', lent[value] === `task:${task.id}`, () => `${value} of ${name} is lent twice`)
    }
    const until_ms = lease?.terms?.until_ms ?? Number.POSITIVE_INFINITY
    mustHold('R20', lease!.expires_ms <= until_ms, () => {
      return `task ${task.id} outlasts its limit: ${JSON.stringify(lease)}`
    })
  }
}

function checkShare(rows: QueueRows, user: string): void {
  const share = rows.shares.get(user)
  if (!share) {
    const waits = rows.tasks.filter((task) => isPending(task) && (task.user ?? '') === user)
    mustHold('R21', waits.length === 0, () => `user ${user} has tasks but no share`)
    return
  }
  const pending = rows.tasks.filter((task) => isPending(task) && (task.user ?? '') === user)
  const high = pending.filter(isHigh).length
  const says = (what: string) => () => `share ${user} ${what}: ${JSON.stringify(share)}`
  mustHold('R21', share.pending === pending.length, says(`has ${pending.length} pending`))
  mustHold('R21', share.pending_high === high, says(`has ${high} of high priority`))
  mustHold('R21', share.waits === pending.length > 0, says('and whether any wait'))
  const open = openLanes(rows, user)
  mustHold('R21', share.lanes === open.length, says(`has ${open.length} open lanes`))
  const next = nextOf(share, open)
  mustHold('R21', share.next_task === (next?.head ?? null), says(`has ${next?.head} next`))
  mustHold('R21', share.next_lane === (next?.key ?? null), says(`has lane ${next?.key} next`))
  mustHold('R21', share.next_high === (next?.high ?? false), says('and its priority'))
  const max = rows.maxOf(user)
  const busy = max !== null && rows.runningOf(user).length >= max
  const idle = !next || share.paused || busy
  mustHold('S8', !idle || share.turn === null, says('stands in turn but cannot start'))
  const turn = next?.high ? 'high' : 'normal'
  mustHold('R21', idle || share.turn === turn, says(`does not stand in turn as ${turn}`))
}

const isPending = (task: Task) => task.queue !== null && task.status === 'todo'
const isHigh = (task: Task) => task.priority >= 7

interface OpenLane {
  key: string
  head: string
  rank: number
  high: boolean
  group: string | null
}

/** Lanes by the tasks that stand in them; parked ones left out. */
function openLanes(rows: QueueRows, user: string): OpenLane[] {
  return [...lanesFrom(rows)]
    .filter(([key, [head]]) => (head!.user ?? '') === user && !rows.lanes.get(key)?.parked_on)
    .map(([key, [head]]) => {
      const { id, rank, group } = head!
      return { key, head: id, rank, group, high: isHigh(head!) }
    })
}

function lanesFrom(rows: QueueRows): Map<string, Task[]> {
  const lanes = new Map<string, Task[]>()
  for (const task of rows.inLanes().toSorted(byRank)) {
    const lane = lanes.get(laneKey(task))
    if (lane) lane.push(task)
    else lanes.set(laneKey(task), [task])
  }
  return lanes
}

/** The group that was started last goes on; else by rank, then by lane. */
function nextOf(share: Share, open: OpenLane[]): OpenLane | undefined {
  const first = (lanes: OpenLane[]) =>
    lanes.toSorted((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : 1))[0]
  const group = open.filter((lane) => share.group !== null && lane.group === share.group)
  return first(group) ?? first(open)
}

function checkLanes(rows: QueueRows): void {
  const expected = lanesFrom(rows)
  for (const lane of rows.lanes.values()) {
    const tasks = expected.get(lane.key) ?? []
    const says = (what: string) => () => `lane ${lane.key} ${what}: ${JSON.stringify(lane)}`
    mustHold('R21', lane.ready === tasks.length, says(`has ${tasks.length} ready`))
    mustHold('R21', lane.head_task === tasks[0]?.id, says(`is headed by ${tasks[0]?.id}`))
    mustHold('R21', lane.head_rank === tasks[0]?.rank, says('and the rank of its head'))
    mustHold('R21', lane.head_high === isHigh(tasks[0]!), says('and its priority'))
    checkParking(rows, lane)
  }
  for (const [key, tasks] of expected) {
    mustHold('R21', rows.lanes.has(key), () => `lane ${key} is missing`)
    const ready = rows.look.rows<Ready>('ready_in_lane', `lane\n${key}`)
    mustHold('R21', ready.map((row) => row.task_id).join() === tasks.map(idOf).join(), () => {
      return `lane ${key} has ${tasks.map(idOf).join()}, its rows say ${JSON.stringify(ready)}`
    })
  }
}

const idOf = ({ id }: { id: string }) => id

function checkParking({ limits, look, shares }: QueueRows, lane: Lane): void {
  if (lane.parked_on === null) return
  const parking = look.get('parking', keyOf(lane.parked_on, lane.user))
  const best = look.rows<Lane>('lanes_parked_at', keyOf(lane.parked_on, lane.user))[0]
  const turn = best?.head_high ? 'high' : 'normal'
  mustHold('R21', parking?.turn === turn, () => `${lane.key} is parked as ${parking?.turn}`)
  const vt = shares.get(lane.user)?.vt ?? 0
  mustHold('R21', parking!.vt <= vt, () => `${lane.user} is parked at ${parking!.vt} of ${vt}`)
  const mine = [`project:${lane.project}`, `group:${lane.group}`, `unserved:${lane.project ?? ''}`]
  mustHold('R21', mine.includes(lane.parked_on), () => `lane ${lane.key} on ${lane.parked_on}`)
  mustHold('R21', limits.has(lane.parked_on), () => `no such limit: ${lane.parked_on}`)
}

/** No lane stays parked on a limit with room without anybody knowing. */
function checkWaking(rows: QueueRows): void {
  for (const limit of rows.limits.values()) {
    const parked = [...rows.lanes.values()].filter((lane) => lane.parked_on === limit.key).length
    const says = (what: string) => () => `limit ${limit.key} ${what}: ${JSON.stringify(limit)}`
    mustHold('R21', limit.parked === parked, says(`has ${parked} parked`))
    const agents = limit.key.startsWith('unserved:') ? 'unserved' : null
    const wakes = parked === 0 ? null : rows.hasRoom(limit.key) ? 'room' : agents
    mustHold('R21', limit.wakes === wakes, says(`could wake ${wakes}`))
  }
}
