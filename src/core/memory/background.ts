import type { Caller } from '../caller.ts'
import { checkFence } from '../locks/lease.ts'
import { keyOf } from '../rows.ts'
import { BACKGROUND_KINDS, type BackgroundJob, type BackgroundKind } from './search_rows.ts'
import type { View } from '../view.ts'

/** A job that was claimed this often without an end is put aside, for a person to look at. */
const ATTEMPTS_MAX = 5
/** From this claim on, the job itself may be what ends the process that does it. */
const SUSPECT_ATTEMPTS = 2
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 300_000
const ERROR_MAX = 500

/** Under which lease something is done in the background. */
export interface Duty {
  name: string
  fence: number
  caller: Caller
}

/**
 * Asks for something to be done behind this change, in its own transaction. Asked for again before
 * it was begun, it is done once; asked for while it is being done, it is done again.
 */
export function askInBackground(view: View, kind: BackgroundKind, subject: string): void {
  const key = keyOf(kind, subject)
  const asked = view.get('background_job', key)
  if (asked?.state === 'waiting' && asked.attempts === 0) return
  view.put('background_job', {
    key,
    kind,
    subject,
    state: 'waiting',
    attempts: 0,
    next_ms: view.now,
    fence: null,
    error: null,
    asked_at: view.at,
  })
}

/** Refuses, as every write under a lease does, when the lease is no longer the caller's. */
export function checkDuty(view: View, { name, fence, caller }: Duty): void {
  checkFence(view, name, fence, caller)
}

/**
 * Claims up to `limit` of one kind that are due, the longest waiting first. What went wrong before
 * is claimed alone: if it ends the process that does it, no other job fails with it.
 */
export function claimBackground(
  view: View,
  kind: BackgroundKind,
  limit: number,
  duty: Duty,
): BackgroundJob[] {
  checkDuty(view, duty)
  const due: BackgroundJob[] = []
  for (const waiting of view.scan('background_jobs_due', kind)) {
    if (waiting.next_ms > view.now || due.length === limit) break
    const isSuspect = waiting.attempts >= SUSPECT_ATTEMPTS
    if (isSuspect && due.length > 0) break
    due.push(waiting)
    if (isSuspect) break
  }
  const { fence } = duty
  for (const waiting of due) {
    const attempts = waiting.attempts + 1
    view.put('background_job', { ...waiting, state: 'claimed', attempts, fence })
  }
  return due
}

/** Whether it is still this claim: not asked for again, not taken back. */
function isOurs(view: View, key: string, fence: number): BackgroundJob | undefined {
  const now = view.get('background_job', key)
  return now?.state === 'claimed' && now.fence === fence ? now : undefined
}

/** Done. If it was asked for again meanwhile it stays, and is done again. */
export function endBackground(view: View, key: string, { fence }: Duty): void {
  if (isOurs(view, key, fence)) view.remove('background_job', key)
}

/** It went wrong: waits twice as long each time, and is put aside at last with what went wrong. */
export function failBackground(view: View, key: string, error: string, { fence }: Duty): void {
  const ours = isOurs(view, key, fence)
  if (ours) view.put('background_job', settled(view, ours, error))
}

function settled(view: View, failed: BackgroundJob, error: string): BackgroundJob {
  const pause_ms = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** (failed.attempts - 1))
  const said = error.slice(0, ERROR_MAX)
  if (failed.attempts < ATTEMPTS_MAX) {
    const next_ms = view.now + pause_ms
    return { ...failed, state: 'waiting', fence: null, next_ms, error: said }
  }
  view.record({
    type: 'background_job.dead',
    agent: '',
    lock: null,
    task: null,
    data: { kind: failed.kind, subject: failed.subject, error: said },
  })
  return { ...failed, state: 'dead', fence: null, error: said }
}

/**
 * What those before us had claimed and not ended: they are gone, or our lease would not be the
 * latest. It is due again at once, but what ends everybody who tries it is put aside.
 */
export function takeBack(view: View, duty: Duty): void {
  checkDuty(view, duty)
  for (const claimed of [...view.scan('background_jobs_in', 'claimed')]) {
    if (claimed.fence === duty.fence) continue
    const back = settled(view, claimed, 'the server that did it was gone before it was done')
    view.put('background_job', back.state === 'dead' ? back : { ...back, next_ms: view.now })
  }
}

/** Tries again what was put aside; the event wakes the process that does it. Returns how many. */
export function retryDead(view: View, limit: number, { agent }: Caller): number {
  let tried = 0
  for (const { kind, subject } of [...view.scan('background_jobs_in', 'dead')].slice(0, limit)) {
    askInBackground(view, kind, subject)
    tried += 1
  }
  const data = { tried }
  if (tried > 0) view.record({ type: 'memory.retried', agent, lock: null, task: null, data })
  return tried
}

/** When the next is due, by the store's clock; null when nothing waits. */
export function nextDue(view: View): number | null {
  const firsts = BACKGROUND_KINDS.flatMap((kind) => {
    for (const { next_ms } of view.scan('background_jobs_due', kind)) return [next_ms]
    return []
  })
  return firsts.length === 0 ? null : Math.min(...firsts)
}
