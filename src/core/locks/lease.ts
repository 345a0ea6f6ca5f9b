import type { Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import type { Ending, Held } from '../event.ts'
import { admits, type Caller, sameProcess, subagents } from '../caller.ts'
import { returnLimits, returnUser } from '../queue/limit.ts'
import { takeBack } from '../queue/resource.ts'
import { LOST_MAX } from '../bounds.ts'
import { word } from '../quote.ts'
import { putTask } from '../tasks/ready.ts'
import type { Action } from '../next.ts'
import { Refusal } from '../refusal.ts'
import type { GroupRef, PathTerms, ProcessRef } from '../rows.ts'
import { closeRun, loseRun, outcomeOf } from '../tasks/run.ts'
import { putShare, shareOf, userOf } from '../queue/share.ts'
import { busyLease, expiryOf, holdingLease, standing } from './standing.ts'
import { planted } from '../planted.ts'
import { NeedsKill, type View } from '../view.ts'

export interface Grant {
  ttl_ms: number
  process: ProcessRef | null
  /** What is reserved, where the lease is a reservation. */
  path?: PathTerms
}

/** Locks of this kind are taken by reserving paths, and in no other way. */
const isPathLock = (name: string) => name.startsWith('path:')

/** `task:42` → `42`; undefined for any other lock. */
export function taskOf(name: string): string | undefined {
  return name.startsWith('task:') ? name.slice(5) : undefined
}

export const lockOf = (task_id: string) => `task:${task_id}`

/** Writes a new lease of `name`. The caller has made sure that the lock may be taken. */
export function grantLease(view: View, name: string, caller: Caller, ask: Grant): Lease {
  const last = view.get('lease', name)
  // The same claim under a new fence counts as before, and ends when it was to end.
  const terms = last?.ended_at === null ? last.terms : null
  const lease: Lease = {
    name,
    fence: nextFence(view, last),
    holder: caller.agent,
    holder_given: caller.given,
    process: ask.process,
    // A holder that asks again may still have its command running.
    group: last?.ended_at === null ? last.group : null,
    seat: ask.process?.seat ?? null,
    acquired_at: view.at,
    acquired_ms: view.now,
    ttl_ms: ask.ttl_ms,
    expires_ms: expiryOf(view.now, ask.ttl_ms, terms),
    ended_at: null,
    reason: null,
    terms,
    path: ask.path ?? null,
  }
  view.put('lease', lease)
  countUser(view, lease)
  tieTask(view, name, lease.fence)
  return lease
}

/** From the store's counter, never from the lock's last lease: that is forgotten one day. */
function nextFence(view: View, last: Lease | undefined): number {
  if (planted('S3')) return last?.fence ?? 1
  return planted('R53') ? (last?.fence ?? 0) + 1 : view.nextFence()
}

/** A task row knows whether its lock is held, so that held tasks are not among the ready ones. */
function tieTask(view: View, name: string, lock_fence: number | null): Task | undefined {
  const id = taskOf(name)
  const task = id === undefined ? undefined : view.get('task', id)
  return task && putTask(view, task, { ...task, lock_fence })
}

/** The lock of a user, taken by hand, counts as one of its tasks while the lease lives. */
function countUser(view: View, lease: Lease): void {
  const user = userOf(lease.name)
  if (user === undefined) return
  const share = shareOf(view, user)
  if (share.running.includes(lease.name)) return
  putShare(view, { ...share, running: [...share.running, lease.name] })
}

/**
 * Ends a lease for whatever reason. A task in progress under it goes back to `todo` and its run is
 * closed.
 */
export function endLease(view: View, lease: Lease, how: Ending, agent: string, reason = ''): void {
  const data = {
    fence: lease.fence,
    holder: lease.holder,
    ...(reason && { reason }),
    ...(lease.path && { path: lease.path.glob, checkout: lease.path.checkout }),
    ...heldFor(view, lease),
  }
  view.record(`lease.${how}`, { agent, lock: lease.name, task: taskOf(lease.name) ?? null }, data)
  closeLease(view, lease, how)
  if (how === 'expired') noticeLoss(view, lease)
}

/** How long a lease was held, and for whom it ran. An event that says so ends a hold. */
export const heldFor = (view: View, lease: Lease): Held => ({
  held_ms: view.now - lease.acquired_ms,
  ...whoseRun(lease),
})

/** For which user and project a lease runs, if it is one of the queue. */
export function whoseRun({ terms }: Lease): Omit<Held, 'held_ms'> {
  const found: Omit<Held, 'held_ms'> = {}
  for (const key of terms?.limits ?? []) {
    const user = userOf(key)
    if (user !== undefined) found.user = user
    else if (key.startsWith('project:')) found.project = key.slice(8)
  }
  return found
}

/** The same without an event of its own, for a change whose event says it all. */
export function closeLease(view: View, lease: Lease, how: Ending): void {
  view.put('lease', { ...lease, ended_at: view.at, reason: how })
  const task = tieTask(view, lease.name, null)
  if (task?.status === 'in_progress') returnTask(view, task, how)
  else if (task?.run_id) endRun(view, task, how)
  releaseRun(view, lease)
  returnLimits(view, lease)
  takeBack(view, lease)
  const user = userOf(lease.name)
  if (user !== undefined) returnUser(view, user, lease.name)
}

/**
 * What the agent of a dispatched run holds besides, and those nested under it, ends with the run:
 * nobody is left to give it back. A command that runs under a lease of its own ends that one.
 */
function releaseRun(view: View, { name, terms }: Lease): void {
  const agent = terms?.token_hash && view.get('token', terms.token_hash)?.agent
  if (!agent || planted('R23')) return
  for (const holder of [...subagents(view, agent)]) {
    for (const lease of [...view.scan('leases_held_by', holder)]) {
      if (lease.name === name || lease.group !== null) continue
      endLease(view, lease, 'released', agent, 'its run has ended')
    }
  }
}

/** The task was moved while its command still ran; now that the command is gone, the run ends. */
function endRun(view: View, task: Task, how: Ending): void {
  closeRun(view, task.run_id, outcomeOf(task.status), how)
  putTask(view, task, { ...task, run_id: null })
}

function returnTask(view: View, task: Task, how: Ending): void {
  if (planted('S6')) return
  const lost = how === 'expired' || how === 'died' || how === 'overdue'
  const queue = lost ? loseRun(view, task) : task.queue
  closeRun(view, task.run_id, how === 'released' ? 'cancelled' : 'lost', how)
  const poison = queue && queue.lost >= LOST_MAX
  if (poison) quarantine(view, task)
  putTask(view, task, {
    ...task,
    queue: queue ?? null,
    status: poison ? 'failed' : 'todo',
    assignee: null,
    assigned_at: null,
    run_id: null,
    version: task.version + 1,
    updated_at: view.at,
  })
}

/** L6: what keeps killing those who run it is put aside, for a person to look at. */
function quarantine(view: View, task: Task): void {
  const data = { lost: LOST_MAX, run: task.run_id }
  view.record('task.quarantined', { agent: 'leasehold', task: task.id }, data)
}

/** An agent is lost when the last lease it held expired. */
function noticeLoss(view: View, lease: Lease): void {
  for (const other of view.scan('leases_held_by', lease.holder)) {
    if (other.name !== lease.name) return
  }
  view.record('agent.lost', { agent: lease.holder }, { lock: lease.name, fence: lease.fence })
}

/**
 * Clears away a lease that is over, so that what follows sees the truth.
 * Stops the ask (`NeedsKill`) while a command we started under it still runs.
 */
export function settleLease(view: View, name: string): Lease | undefined {
  const lease = view.get('lease', name)
  if (!lease) return undefined
  switch (standing(view, lease)) {
    case 'live':
    case 'lingering':
      return lease
    case 'ended':
      return undefined
    case 'orphaned':
      throw new NeedsKill(lease, lease.group!)
    case 'expired':
      // A revoked lease bears its reason already; all others simply ran out.
      endLease(view, lease, (lease.reason as Ending | null) ?? 'expired', lease.holder)
      return undefined
    case 'dead':
      endLease(view, lease, 'died', lease.holder)
      return undefined
  }
}

/**
 * Everything done under a lease begins here, in the transaction of the write itself.
 * Returns the live lease, or refuses: `fence_stale` for a fence older than the lock's latest,
 * `held` when another holds it, `lease_expired` when nobody does.
 */
export function checkFence(
  view: View,
  name: string,
  fence: number | undefined,
  caller: Caller,
): Lease {
  const last = view.get('lease', name)
  if (last && planted('S2')) return last
  const claim = holdingLease(view, name) ? undefined : busyLease(view, name)
  if (claim) throw heldByClaim(view, claim, caller)
  if (fence !== undefined && fence !== last?.fence) throw staleFence(name, fence, last, caller)
  const lease = holdingLease(view, name)
  if (!lease) throw expiredLease(name, last)
  const itself = admits(lease.holder, caller.agent)
  const theirs = fence === undefined && lease.process !== null
  if (!itself || (theirs && !sameProcess(lease.process, caller.process))) {
    throw heldBy(view, lease, caller)
  }
  if (standing(view, lease) !== 'live') throw expiredLease(name, last)
  return lease
}

/** A claim keeps the user busy: its lock has no lease of its own, and goes back with the claim. */
function heldByClaim(view: View, claim: Lease, caller: Caller): Refusal {
  const { message, details } = heldBy(view, claim, caller)
  const says = 'It comes back when the task that keeps this user busy ends'
  return new Refusal('held', message, { next: { says, operation: 'queue.status' }, details })
}

function staleFence(name: string, fence: number, last: Lease | undefined, caller: Caller): Refusal {
  const current = last
    ? `the latest is ${last.fence}, of ${word(last.holder)}`
    : 'it was never granted, or so long ago that its lease is forgotten'
  return new Refusal('fence_stale', `Fence ${fence} of ${word(name)} is stale: ${current}`, {
    next: { says: 'Stop: this work is no longer yours. To go on, take it again', ...taking(name) },
    details: { name, fence, current_fence: last?.fence ?? null, holder: last?.holder ?? null },
    leaves: {
      type: 'write.fenced_off',
      lock: name,
      data: { fence, current_fence: last?.fence ?? null, by: caller.agent },
    },
  })
}

/** Nobody holds `name` any more, so nothing can be written under a lease of it. */
export function expiredLease(name: string, last: Lease | undefined): Refusal {
  const reason = last ? (last.reason ?? 'expired') : 'never held'
  const why = last ? `the lease ${last.fence} of ${word(last.holder)} ended (${reason})` : reason
  const message =
    taskOf(name) === undefined
      ? `Nobody holds ${word(name)}: ${why}`
      : `Task must be locked by agent to update status: ${why}`
  return new Refusal('lease_expired', message, {
    next: isPathLock(name)
      ? { says: 'Reserve it again if it is free: see what is reserved', operation: 'reserve.list' }
      : { says: `Take it${last ? ' again' : ''}, which works if nobody else did`, ...taking(name) },
    details: { name, reason, last_fence: last?.fence ?? null },
  })
}

function taking(name: string) {
  const id = taskOf(name)
  return id === undefined
    ? { operation: 'lock.acquire', input: { names: [name] } }
    : { operation: 'task.claim', input: { id } }
}

/** `held`, with who holds it, since when, until when, and the process where it is known. */
export function heldBy(view: View, lease: Lease, caller: Caller, takeover = false): Refusal {
  const task = taskOf(lease.name)
  const by_you = lease.holder === caller.agent
  const what = task === undefined ? `${word(lease.name)} is held` : 'Task is locked'
  const times = timesOf(view, lease)
  return new Refusal('held', `${what} by ${holding(view, lease)}`, {
    next: by_you
      ? takeover
        ? 'Your own agent id has it, by a command on a host that cannot be asked from here: stop ' +
          'it there.'
        : 'Your own agent id has it, by another process or call: release it there, or ask with ' +
          'takeover.'
      : ['Wait for it, or take other work.', freeing(lease, caller)],
    details: {
      name: lease.name,
      holder: lease.holder,
      fence: lease.fence,
      since: lease.acquired_at,
      ...times,
      ...(lease.process && { pid: lease.process.pid, host: lease.process.host }),
      by_you,
    },
  })
}

/** In words: the holder, its process and host where they are known, since when and until when. */
export function holding(view: View, lease: Lease): string {
  const { holder, process, acquired_at } = lease
  const where = process ? ` (PID: ${process.pid} on ${word(process.host)})` : ''
  return `${word(holder)}${where} since ${acquired_at} until ${timesOf(view, lease).expires_at}`
}

/**
 * Who can free what another holds, and how. An agent may not, and would try a command that it was
 * told: only a person who typed this without an agent's name reads it.
 */
export function freeing({ name }: Lease, { given }: Pick<Caller, 'given'>): Action {
  return given
    ? { says: 'Only a person can free it: ask your user.' }
    : { says: 'An admin can free it', operation: 'lock.force_release', input: { name } }
}

/** Whether the command started under this lease may still run. */
export function isRunning(view: View, lease: Lease): boolean {
  return lease.group !== null && view.group(lease.group) !== 'dead'
}

/**
 * Takes a lease back while its command still runs: nothing more is accepted under it from now on,
 * and the lock is free when the command is gone. What was decided is committed before the kill.
 */
export function revokeLease(view: View, lease: Lease, how: Ending): Lease {
  // One that is overdue already stays so: its grace is counted from there.
  const expires_ms = Math.min(lease.expires_ms, view.now)
  const revoked = { ...lease, expires_ms, reason: how }
  view.put('lease', revoked)
  if (view.group(lease.group!) === 'alive') throw new NeedsKill(lease, lease.group!, true)
  return revoked
}

/**
 * The process group that a lease names is stopped when the lease ends, so one of our programs must
 * have started it for that: refuses a group that runs here and does not carry its mark.
 */
export function refuseForeign(view: View, group: GroupRef): void {
  if (view.leader(group) !== 'dead') return
  const { pid } = group
  throw new Refusal('illegal_move', `Process ${pid} is not a command that leasehold started`, {
    next: 'Let leasehold start it: leasehold run --lock NAME -- COMMAND',
    details: { pid },
  })
}

/** A lock under a running command goes back when the command has ended, not before. */
export function refuseWhileRunning(view: View, lease: Lease): void {
  if (!isRunning(view, lease)) return
  throw new Refusal('illegal_move', `A command still runs under ${word(lease.name)}`, {
    next: 'The lock is free when the command ends. A person can stop it, by a force-release.',
    details: { name: lease.name, pid: lease.group?.pid },
  })
}

/**
 * When a lease ends, on the clock that people read: the store's clock is for comparing only. Whole
 * seconds of difference between the two are made up for; less is not, or the same lease would seem
 * to end at a slightly other time in every answer.
 */
export function timesOf(view: View, lease: Lease) {
  const left_ms = Math.max(0, lease.expires_ms - view.now)
  const apart_ms = Math.round((view.wall - view.now) / 1000) * 1000
  return {
    expires_at: new Date(lease.expires_ms + apart_ms).toISOString(),
    expires_in_seconds: Math.ceil(left_ms / 1000),
  }
}

/** A lease as doors show it. */
export function showLease(view: View, lease: Lease) {
  const { name, holder, fence, acquired_at } = lease
  return {
    name,
    holder,
    fence,
    lock_id: `${name}#${fence}`,
    acquired_at,
    ...timesOf(view, lease),
    ttl_seconds: lease.ttl_ms / 1000,
    ...(lease.process && { pid: lease.process.pid, host: lease.process.host }),
  }
}
