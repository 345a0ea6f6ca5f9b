import { PRIORITY_DEFAULT } from '../core/bounds.ts'
import type { Cursor } from '../core/schema/indexes.ts'
import type { Lease } from '../core/schema/lock.ts'
import { expiredLease, lockOf, showLease, taskOf, timesOf } from '../core/locks/lease.ts'
import { explainWaiter } from '../core/reasons/explain.ts'
import { handOff } from '../core/locks/handoff.ts'
import { firstInLine, isGone } from '../core/locks/line.ts'
import {
  acquireLocks,
  nameGroup,
  releaseLock,
  renewLock,
  type Waiting,
} from '../core/locks/lock.ts'
import { Refusal } from '../core/refusal.ts'
import { busyTask, freeLock } from '../core/queue/cancel.ts'
import { getTask } from '../core/tasks/task.ts'
import { userOf } from '../core/queue/share.ts'
import { busyLease, holdingLease, liveLease } from '../core/locks/standing.ts'
import type { View } from '../core/view.ts'
import * as answers from './answers/locks.ts'
import type { AnswerAs } from './answers/shape.ts'
import * as f from './fields.ts'
import { cursorIn, pageIn, pageOf } from './page.ts'
import { adminOperation, field, readOperation, toMs, writeOperation } from './operation.ts'
import * as s from './schemas.ts'

export type ShownLease = AnswerAs<typeof answers.lease>
type Granted = AnswerAs<typeof answers.granted>

export const acquire = writeOperation({
  name: 'lock.acquire',
  grants: true,
  touches: (input) => namesIn(input).map((lock) => ({ lock })),
  refuses: ['held', 'deadlock', 'lease_expired', 'not_found'],
  doc: 'Take a lock until it is released or expires. Of many who ask at once, one gets it.',
  tool: 'acquire_lock',
  input: {
    name: field(() => s.optional(s.lockName()), 'The lock.', null),
    names: field(() => s.optional(s.lockNames()), 'Several locks, all or nothing.'),
    task_id: f.lockedTask,
    ttl_seconds: f.ttlSeconds,
    wait_seconds: field(
      () => s.or(s.seconds(0, 24 * 3600), 0),
      'If the lock is held, wait in line for up to this long.',
    ),
    priority: field(
      () => s.or(s.level(), PRIORITY_DEFAULT),
      'Priority in the line, 0–9 (default 5). Waiting time counts too, so nobody starves.',
    ),
    takeover: f.takeover,
    process: f.holderProcess,
  },
  output: answers.granted,
  command: 'lock acquire names…',
  reads: (input) => namesIn(input).map(leaseOf),
  spends: (input) => ({ leases: namesIn(input).length }),
  decide: (view, input, caller, ticket_id): Granted | Waiting => {
    const { priority, takeover, process } = input
    const names = namesIn(input)
    refuseUnknown(view, input)
    const ask = { names, priority, takeover, process, ticket_id, ttl_ms: input.ttl_seconds * 1000 }
    const got = acquireLocks(view, ask, caller)
    return 'waiting' in got ? got : shown(view, got)
  },
  replay: (view, reply) => {
    const leases = 'items' in reply ? reply.items : [reply]
    return shown(
      view,
      leases.map(({ name, fence }) => stillLive(view, name, fence)),
    )
  },
})

interface Named {
  name?: string | undefined
  names?: string[] | undefined
  task_id?: string | undefined
}

/** One lock by `name` or by its task, or several by `names`. */
function namesIn({ name, names, task_id }: Named): string[] {
  const ofTask = task_id === undefined ? [] : [lockOf(task_id)]
  const said = new Set(name === undefined ? ofTask : [name, ...ofTask])
  if (said.size === 1 && names === undefined) return [...said]
  if (said.size === 0 && names !== undefined) return names
  throw new Refusal(
    'invalid',
    said.size === 0 ? 'name is missing' : 'Give one of name, names and task_id, not several',
    { next: 'One lock: {"name": "build"}. Several, all or nothing: {"names": ["db", "cache"]}.' },
  )
}

/** The one lock that is named, or that of a task that exists. */
function lockIn(view: View, input: Named): string {
  refuseUnknown(view, input)
  return namesIn(input)[0]!
}

/** Refuses with `not_found` if the named task does not exist. */
function refuseUnknown(view: View, { task_id }: Named): void {
  if (task_id !== undefined) getTask(view, task_id)
}

const leaseOf = (key: string) => ({ table: 'lease' as const, key })

/** One lock is answered as a lease, several as a list of leases. */
function shown(view: View, leases: Lease[]): Granted {
  const items = leases.map((lease) => showLease(view, lease))
  return items.length === 1 ? items[0]! : { items, next: null }
}

/** A replayed grant carries its present times; one that has died since is no grant any more. */
export function stillLive(view: View, name: string, fence: number): Lease {
  const lease = liveLease(view, name)
  if (lease?.fence === fence) return lease
  throw expiredLease(name, view.get('lease', name))
}

const liveAgain = (view: View, { name, fence }: ShownLease): ShownLease =>
  showLease(view, stillLive(view, name, fence))

export const renew = writeOperation({
  name: 'lock.renew',
  touches: (input) => namesIn(input).map((lock) => ({ lock })),
  refuses: ['held', 'fence_stale', 'lease_expired', 'not_found'],
  doc: 'Extend a lease from now on. An expired lease is never revived.',
  tool: 'renew_lock',
  input: {
    name: f.anyLockNameAlone,
    task_id: f.lockedTask,
    fence: f.fence,
    ttl_seconds: f.ttlSecondsOptional,
  },
  output: answers.lease,
  command: 'lock renew name',
  reads: (input) => namesIn(input).map(leaseOf),
  decide: (view, { fence, ttl_seconds, ...input }, caller) => {
    const name = lockIn(view, input)
    return showLease(view, renewLock(view, { name, fence, ttl_ms: toMs(ttl_seconds) }, caller))
  },
  replay: liveAgain,
})

export const release = writeOperation({
  name: 'lock.release',
  touches: (input) => namesIn(input).map((lock) => ({ lock })),
  refuses: ['held', 'fence_stale', 'lease_expired', 'illegal_move', 'not_found'],
  doc: 'Release a lock. If its task is in progress, the task goes back to todo.',
  tool: 'release_lock',
  input: {
    name: f.anyLockNameAlone,
    names: field(() => s.optional(s.someNames()), 'Several locks, all or nothing.'),
    task_id: f.lockedTask,
    fence: f.fence,
  },
  output: answers.released,
  command: 'lock release names…',
  reads: (input) => namesIn(input).map(leaseOf),
  decide: (view, input, caller): AnswerAs<typeof answers.released> => {
    refuseUnknown(view, input)
    const names = [...new Set(namesIn(input))]
    const { fence: said } = input
    if (said !== undefined && names.length > 1) {
      throw new Refusal('invalid', 'A fence is of one lock, and several are named', {
        next: 'Release them one by one, each with its own fence.',
      })
    }
    const items = names.map((name) => {
      const { fence } = releaseLock(view, { name, fence: said }, caller)
      return { name, fence, released: true }
    })
    return items.length === 1 ? items[0]! : { items, next: null }
  },
})

export const forceReleaseLock = adminOperation({
  name: 'lock.force_release',
  names_ours: true,
  refuses: ['forbidden', 'not_found'],
  doc: 'Free a lock that another agent holds; a command that we started under it is stopped first.',
  input: {
    name: f.anyLockName,
    reason: field(() => s.optional(s.plain(500)), 'The reason, kept in the event log.'),
  },
  output: answers.forceReleased,
  command: 'lock force-release name',
  decide: (view, input, caller) => {
    const { name, fence, holder } = freeLock(view, input, caller)
    return { name, fence, holder, released: true }
  },
})

export const handOffLock = writeOperation({
  name: 'lock.hand_off',
  touches: (input) => namesIn(input).map((lock) => ({ lock })),
  refuses: ['held', 'fence_stale', 'lease_expired', 'illegal_move', 'not_found'],
  doc: 'Pass a lock to another agent, with no moment in which anyone else could take it.',
  tool: 'hand_off_lock',
  input: {
    name: f.anyLockNameAlone,
    task_id: f.lockedTask,
    fence: f.fence,
    to: field(() => s.plain(256), 'The agent that gets the lock.', '--to <agent>'),
    ttl_seconds: f.ttlSecondsOptional,
  },
  output: answers.lease,
  command: 'lock handoff name',
  decide: (view, { fence, to, ttl_seconds, ...input }, caller) => {
    const name = lockIn(view, input)
    return showLease(view, handOff(view, { name, fence, to, ttl_ms: toMs(ttl_seconds) }, caller))
  },
  replay: liveAgain,
})

/** Used by `run` and runners between acquiring a lock and letting the command start. */
export const nameGroupOfLock = adminOperation({
  name: 'lock.name_group',
  internal: true,
  touches: ({ name }) => [{ lock: name }],
  refuses: ['held', 'fence_stale', 'lease_expired', 'illegal_move'],
  doc: 'Tie a process group to a lease: the lock is free only when the group is gone.',
  input: {
    name: field(s.lockName, 'Name of the lock: task:42, git:web, or any other.'),
    fence: f.fence,
    group: f.group,
  },
  output: answers.lease,
  decide: (view, { name, fence, group }, caller) =>
    showLease(view, nameGroup(view, { name, fence: fence ?? 0, group }, caller)),
  replay: liveAgain,
})

export const lockStatus = readOperation({
  name: 'lock.status',
  refuses: ['not_found'],
  doc: 'Who holds a lock, until when, and who waits for it.',
  input: { name: f.anyLockNameAlone, task_id: f.lockedTask },
  output: answers.lockStatus,
  command: 'lock status name',
  decide: (view, input) => {
    const name = lockIn(view, input)
    const lease = holdingLease(view, name) ?? busyLease(view, name)
    const times = lease && timesOf(view, lease)
    const waiters = firstInLine(view, name).map(({ agent, asked_at, priority }, i) => {
      return { position: i + 1, agent, asked_at, priority }
    })
    return {
      name,
      is_locked: lease !== undefined,
      lock_holder: lease?.holder ?? null,
      lock_expires_at: times?.expires_at ?? null,
      expires_in_seconds: times?.expires_in_seconds ?? null,
      fence: lease?.fence ?? view.get('lease', name)?.fence ?? null,
      lock_id: lease ? `${name}#${lease.fence}` : null,
      acquired_at: lease?.acquired_at ?? null,
      ...(lease && behind(view, lease)),
      waiters,
    }
  },
})

/** Who is behind a lease, where that is known: its process, and the task that keeps a user busy. */
function behind(view: View, lease: Lease) {
  const task_id = busyTask(view, lease.name)
  // What keeps a user busy is the command that a runner started, not the runner.
  const process = (task_id !== undefined && lease.group) || lease.process
  return {
    ...(task_id !== undefined && { task_id }),
    ...(process && { pid: process.pid, host: process.host }),
  }
}

export type ShownStatus = AnswerAs<typeof answers.lockStatus>

export const listLocks = readOperation({
  name: 'lock.list',
  refuses: ['invalid'],
  doc: 'All locks that are held, the next to expire first.',
  tool: 'list_locks',
  input: { ...f.page },
  output: answers.heldLocks,
  command: 'lock list',
  decide: (view, { limit, after }) => {
    const leases = heldLocks(view, cursorIn(after))
    return pageOf(leases, 'leases_by_expiry', limit, (lease) => {
      return { ...showLease(view, lease), ...behind(view, lease) }
    })
  },
})

/**
 * Leases by expiry and name, and among them the locks of users that claims keep busy. Such a lock
 * has no row: it is found beside the claim, with which it expires. So a page that ends at one of
 * them goes on from the first lease with the same expiry, and leaves out what was shown.
 */
function* heldLocks(view: View, after: Cursor | undefined): Generator<Lease> {
  const from = after && { order: after.order, key: '' }
  const isShown = ({ name, expires_ms }: Lease) =>
    after !== undefined && expires_ms === after.order && name <= after.key
  let same: Lease[] = []
  for (const lease of view.scan('leases_by_expiry', '', from)) {
    if (same[0] && same[0].expires_ms !== lease.expires_ms) {
      yield* same.toSorted(byName)
      same = []
    }
    same.push(...[lease, ...busyUser(view, lease)].filter((each) => !isShown(each)))
  }
  yield* same.toSorted(byName)
}

const byName = (a: Lease, b: Lease) => (a.name < b.name ? -1 : 1)

/** The lock of the user that this claim keeps busy, if nobody holds it by hand. */
function busyUser(view: View, { name, terms }: Lease): Lease[] {
  const lock = terms?.limits.find((key) => userOf(key) !== undefined)
  if (lock === undefined || busyTask(view, lock) !== taskOf(name)) return []
  const lease = busyLease(view, lock)
  return lease ? [lease] : []
}

export const explainLock = readOperation({
  name: 'lock.explain',
  refuses: ['not_found'],
  doc: 'Why you do not have this lock yet: who holds it, and who comes before you.',
  input: { name: f.anyLockName },
  output: answers.explanation,
  command: 'lock explain name',
  decide: (view, { name }, caller) => explainWaiter(view, name, caller.agent),
})

/** For those who watch many locks: just the ones that something happened to. */
export const peek = readOperation({
  name: 'lock.peek',
  internal: true,
  doc: 'The given locks at a glance, if they are held.',
  input: { names: field(s.anyNames, 'Names of the locks.') },
  output: answers.peekedLocks,
  decide: (view, { names }) => {
    const items = names.flatMap((name) => {
      const lease = holdingLease(view, name) ?? busyLease(view, name)
      return lease ? [{ ...showLease(view, lease), ...behind(view, lease) }] : []
    })
    return { items, next: null }
  },
})

export const waiters = readOperation({
  name: 'lock.waiters',
  refuses: ['invalid'],
  doc: 'Everybody who waits for a lock, in order.',
  input: { ...f.page },
  output: answers.waiters,
  command: 'lock waiters',
  decide: (view, page) =>
    pageIn(view, ['tickets', ''], page, (ticket) => {
      if (ticket.cycle || isGone(view, ticket)) return null
      const { id, agent, names, priority, asked_at } = ticket
      return { id, agent, names, priority, asked_at, called: ticket.called_ms !== null }
    }),
})
