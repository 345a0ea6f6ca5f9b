import type { Lane, Parking, Share } from '../schema/queue.ts'
import type { Task } from '../schema/task.ts'
import { putLimit, limitOf } from './limit.ts'
import { first } from '../first.ts'
import { keyOf } from '../rows.ts'
import { putShare, shareOf } from './share.ts'
import type { View } from '../view.ts'

/**
 * Ready tasks of the queue stand in lanes: one per user, project and group. A share knows the lane
 * that comes next, so that choosing whom to serve looks at no task and at no lane of those who
 * cannot be served.
 */
const laneKey = (task: Task) => keyOf(task.user ?? '', task.project ?? '', task.group ?? '')

/** The scope of the ready rows of a lane. */
export const scopeOfLane = (key: string) => keyOf('lane', key)
export const laneScope = (task: Task) => scopeOfLane(laneKey(task))
export const isLaneScope = (scope: string) => scope.startsWith('lane\n')

function newLane(task: Task): Lane {
  const user = task.user ?? ''
  return {
    key: laneKey(task),
    user,
    project: task.project,
    group: task.group,
    group_key: task.group === null ? null : keyOf(user, task.group),
    ready: 0,
    head_rank: null,
    head_task: null,
    head_high: false,
    parked_on: null,
  }
}

/** A ready row was added to the lane of `task`. */
export function joinLane(view: View, task: Task, high: boolean): void {
  const before = view.get('lane', laneKey(task)) ?? newLane(task)
  const lane = { ...before, ready: before.ready + 1 }
  if (isAhead(task, before)) {
    lane.head_rank = task.rank
    lane.head_task = task.id
    lane.head_high = high
  }
  view.put('lane', lane)
  if (lane.parked_on !== null) return setParking(view, lane.parked_on, lane.user)
  const share = shareOf(view, lane.user)
  const opened = before.ready === 0 ? 1 : 0
  if (opened || lane.head_task !== before.head_task) {
    chooseNext(view, { ...share, lanes: share.lanes + opened }, lane)
  }
}

function isAhead(task: Task, lane: Lane): boolean {
  if (lane.head_rank === null || lane.head_task === null) return true
  if (task.rank !== lane.head_rank) return task.rank < lane.head_rank
  return task.id < lane.head_task
}

/** A ready row was taken out of the lane of `task`, as it was before. */
export function leaveLane(view: View, task: Task): void {
  const before = view.get('lane', laneKey(task))
  if (!before) return
  const share = shareOf(view, before.user)
  if (before.ready === 1) {
    view.remove('lane', before.key)
    if (before.parked_on !== null) return unparkFrom(view, before.parked_on, before.user)
    chooseNext(view, { ...share, lanes: share.lanes - 1 })
    return
  }
  const lane = { ...before, ready: before.ready - 1 }
  if (before.head_task === task.id) setHead(view, lane)
  view.put('lane', lane)
  if (lane.head_task === before.head_task) return
  if (lane.parked_on === null) chooseNext(view, share, lane)
  else setParking(view, lane.parked_on, lane.user)
}

function setHead(view: View, lane: Lane): void {
  const head = first(view.scan('ready_in_lane', scopeOfLane(lane.key)))
  if (!head) return
  lane.head_rank = head.rank
  lane.head_task = head.task_id
  lane.head_high = head.high
}

/** Writes a share with what it would start next. `lane` is one of its lanes that is open. */
function chooseNext(view: View, share: Share, lane?: Lane): void {
  const next = share.lanes === 0 ? undefined : nextLane(view, share, lane)
  putShare(view, {
    ...share,
    next_lane: next?.key ?? null,
    next_task: next?.head_task ?? null,
    next_high: next?.head_high ?? false,
  })
}

/** Tasks of the group that was started last come first, then by rank. */
function nextLane(view: View, share: Share, lane: Lane | undefined): Lane | undefined {
  if (share.lanes === 1 && lane) return lane
  const next =
    share.group === null
      ? undefined
      : first(view.scan('lanes_of_group', keyOf(share.user, share.group)))
  return next ?? first(view.scan('lanes_of', share.user))
}

/** The group of `task` was started last: its ready tasks come next. */
export function followGroup(view: View, task: Task): void {
  const share = shareOf(view, task.user ?? '')
  if (share.group !== task.group) chooseNext(view, { ...share, group: task.group })
}

/** A limit that `lane` needs has no room: the lane is not looked at until there is some. */
export function parkLane(view: View, lane: Lane, limit: string): void {
  const share = shareOf(view, lane.user)
  view.put('lane', { ...lane, parked_on: limit })
  const row = limitOf(view, limit)
  putLimit(view, { ...row, parked: row.parked + 1 })
  chooseNext(view, { ...share, lanes: share.lanes - 1 })
  setParking(view, limit, lane.user)
}

/** Keeps true where a user stands among those who are parked on a limit. */
function setParking(view: View, limit: string, user: string): void {
  const key = keyOf(limit, user)
  const best = first(view.scan('lanes_parked_at', key))
  if (!best) return view.remove('parking', key)
  const turn = best.head_high ? 'high' : 'normal'
  view.put('parking', { key, limit, user, vt: shareOf(view, user).vt, turn })
}

function unparkFrom(view: View, limit: string, user: string): void {
  const row = limitOf(view, limit)
  putLimit(view, { ...row, parked: row.parked - 1 })
  setParking(view, limit, user)
}

/**
 * Wakes lanes on every limit that has room again, or that keeps only dispatchers away: of those
 * parked there, one with a high priority and one without, each of the user furthest behind. Whose
 * turn it is among all is for the caller to say. True if any was woken.
 */
export function wakeLanes(view: View, why: 'room' | 'unserved'): boolean {
  let woken = false
  for (const { key } of [...view.scan('limits_waking', why)]) {
    for (const turn of ['high', 'normal'] as const) {
      const lane = firstParked(view, key, turn)
      if (lane) wakeLane(view, lane)
      woken ||= lane !== undefined
    }
  }
  return woken
}

function wakeLane(view: View, lane: Lane): void {
  const awake = { ...lane, parked_on: null }
  view.put('lane', awake)
  unparkFrom(view, lane.parked_on!, lane.user)
  const share = shareOf(view, lane.user)
  chooseNext(view, { ...share, lanes: share.lanes + 1 }, awake)
}

/** Users were served elsewhere since they were parked here: they are moved back when met. */
function firstParked(view: View, limit: string, turn: Parking['turn']): Lane | undefined {
  for (;;) {
    const parking = first(view.scan('parkings_at', keyOf(limit, turn)))
    if (!parking) return undefined
    const { vt } = shareOf(view, parking.user)
    if (vt > parking.vt) view.put('parking', { ...parking, vt })
    else return first(view.scan('lanes_parked_at', parking.key))
  }
}
