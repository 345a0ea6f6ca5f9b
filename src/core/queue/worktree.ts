import type { Worktree } from '../schema/worktree.ts'
import type { Run } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import type { Caller } from '../caller.ts'
import { checkFence, endLease, lockOf } from '../locks/lease.ts'
import { acquireLocks, renewLock } from '../locks/lock.ts'
import { word } from '../quote.ts'
import { liveLease } from '../locks/standing.ts'
import { Refusal } from '../refusal.ts'
import type { GroupRef, ProcessRef } from '../rows.ts'
import type { View } from '../view.ts'

/** How long who enters a repository has it, unless that is renewed. */
export const ENTERED_MS = 120_000

/** By this lock worktrees of a repository are made and removed one at a time on a host. */
export const repositoryLock = (host: string, repository: string) =>
  `leasehold:worktrees:${host}:${repository}`

export interface EnterRepository {
  repository: string
  ttl_ms: number
  process: ProcessRef
  /** The caller's own group, git commands included: nobody else enters before it is gone. */
  group: GroupRef
  /** The run that it is for; without one, a keeper asks. */
  run?: { task_id: string; fence: number } | undefined
}

/** A worktree, and whether the run that has it is over. */
export interface SeenWorktree extends Worktree {
  is_over: boolean
}

/**
 * Takes the lock of a repository; refuses with `held`, and at once when the run that it is for is
 * over. Answers what is recorded of the repository here.
 */
export function enterRepository(view: View, ask: EnterRepository, caller: Caller) {
  const { repository, ttl_ms, process, group, run } = ask
  if (run) checkFence(view, lockOf(run.task_id), run.fence, caller)
  const name = repositoryLock(process.host, repository)
  const taking = { names: [name], ttl_ms, process, priority: 5, takeover: false }
  const [lease] = acquireLocks(view, taking, caller) as [Lease]
  view.put('lease', { ...lease, group })
  const items = [...view.scan('worktrees', '')].filter(
    (each) => each.host === process.host && each.repository === repository,
  )
  return { fence: lease.fence, items: items.map((each) => seen(view, each)) }
}

/** What a run waits for that has not begun yet, in words; empty for one that has. */
export function waitBeforeBegin(view: View, { begun_at, dispatcher, agent, host }: Run): string {
  if (dispatcher === null || begun_at !== null) return ''
  const prefix = repositoryLock(host ?? '', '')
  for (const { name, holder, acquired_at } of view.due(
    'leases_by_expiry',
    '',
    view.now + ENTERED_MS,
  )) {
    if (!name.startsWith(prefix) || !liveLease(view, name)) continue
    const who = holder === agent ? 'its worktree is made' : `${word(holder)} is at work`
    const where = `${who} in ${name.slice(prefix.length)}`
    return `, and its command has not begun: ${where} since ${acquired_at}`
  }
  return ', and its command has not begun'
}

/** A worktree as it stands; a run whose row was forgotten is over as well. */
export const seen = (view: View, worktree: Worktree): SeenWorktree => ({
  ...worktree,
  is_over: isOver(view, worktree.run_id),
})

function isOver(view: View, run_id: string): boolean {
  const run = view.get('run', run_id)
  return run === undefined || run.ended_at !== null
}

/** The worktree, or `not_found`. */
export function getWorktree(view: View, id: string): Worktree {
  const found = view.get('worktree', id)
  if (found) return found
  throw noWorktree(id)
}

/** `not_found`, for an id that no worktree has. */
export function noWorktree(id: string): Refusal {
  return new Refusal('not_found', `There is no worktree ${word(id)}`, {
    next: { says: 'See what there is', operation: 'worktree.list' },
    details: { id },
  })
}

export interface RecordWorktree {
  repository: string
  host: string
  /** Of the repository's lock. */
  fence: number
  /** How it stands now. */
  worktree?: Worktree | undefined
  /** Nothing is left of the worktree of this id. */
  gone?: string | undefined
  /** The caller is done with the repository. */
  leaves: boolean
}

/**
 * Writes how a worktree stands, under the fence of its repository, and renews that lease or ends
 * it. For a run that begins to use one, also under the fence of the run: `held` while another run
 * that is not over has it. `conflict`: what is to be made has the id of another one.
 */
export function recordWorktree(view: View, ask: RecordWorktree, caller: Caller): void {
  const { fence, worktree, gone, leaves } = ask
  const name = repositoryLock(ask.host, ask.repository)
  const lease = checkFence(view, name, fence, caller)
  const id = worktree?.id ?? gone
  const before = id === undefined ? undefined : view.get('worktree', id)
  if (before && worktree?.state === 'making' && before.fence !== worktree.fence) {
    throw new Refusal('conflict', `There is a worktree ${word(before.id)} already`, {
      next: 'Take another id: this one was given before the store was restored, say.',
      details: { id: before.id },
    })
  }
  const inUse = worktree?.state === 'making' || worktree?.state === 'ready'
  if (worktree && inUse) checkFence(view, lockOf(worktree.task_id), worktree.fence, caller)
  const isOwn = before?.run_id === worktree?.run_id && worktree?.state !== 'removing'
  if (before && !isOwn && !isOver(view, before.run_id)) throw inUseBy(before)
  if (worktree) view.put('worktree', worktree)
  if (gone !== undefined) view.remove('worktree', gone)
  if (before && gone !== undefined) recordEvent(view, 'worktree.removed', before, caller)
  if (worktree && worktree.state !== before?.state && worktree.state !== 'making') {
    const type = worktree.state === 'ready' ? 'worktree.made' : 'worktree.left'
    if (worktree.state !== 'removing') recordEvent(view, type, worktree, caller)
  }
  if (leaves) endLease(view, { ...lease, group: null }, 'released', caller.agent)
  else renewLock(view, { name, fence }, caller)
}

/** `held`: it is a run's own until that run is over. */
export function inUseBy({ id, run_id, task_id }: Worktree): Refusal {
  return new Refusal('held', `Worktree ${id} is in use by run ${run_id}`, {
    next: {
      says: 'Wait for its end, or cancel it',
      operation: 'queue.cancel',
      input: { id: task_id },
    },
    details: { id, run_id, task_id },
  })
}

function recordEvent(
  view: View,
  type: 'worktree.made' | 'worktree.left' | 'worktree.removed',
  { id, run_id: run, task_id: task, path, branch, salvage }: Worktree,
  { agent }: Caller,
): void {
  // A task may be forgotten before its worktree goes.
  const known = view.get('task', task) ? task : null
  const data = { worktree: id, run, path, branch, salvage: salvage?.commit ?? null }
  view.record(type, { agent, task: known }, data)
}
