import type { Embedding, NoteAttempt } from '../schema/search.ts'
import type { Memory } from '../schema/memory.ts'
import type { Caller } from '../caller.ts'
import { first, firstOf } from '../first.ts'
import { checkFence } from '../locks/lease.ts'
import type { View } from '../view.ts'

/** A note that was tried this often in vain is put aside, for a person to look at. */
const ATTEMPTS_MAX = 5
/** From so many attempts on, the note itself may be what ends the process that reads it. */
const SUSPECT_ATTEMPTS = 3
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 300_000
const ERROR_MAX = 500
const GONE = 'the server that did it was gone before it was done'

/** Under which lease something is done in the background. */
export interface Duty {
  name: string
  fence: number
  caller: Caller
}

/** Refuses, as every write under a lease does, when the lease is no longer the caller's. */
export function checkDuty(view: View, { name, fence, caller }: Duty): void {
  checkFence(view, name, fence, caller)
}

/** From now on this provider's vectors count: all notes are read again, from the oldest on. */
export function adoptProvider(
  view: View,
  { name, dimensions }: { name: string; dimensions: number },
  duty: Duty,
): void {
  if (view.get('embedding', 'embedding')?.provider === name) return
  checkDuty(view, duty)
  const begun = { since_at: view.at, cursor: '', cursor_ms: 0 }
  view.put('embedding', { key: 'embedding', provider: name, dimensions, ...begun })
  const { agent } = duty.caller
  view.record('memory.provider_changed', { agent }, { provider: name, dimensions })
}

/** Notes that changed since the keeper came by, the longest ago first. */
export const notesBehind = (view: View, { cursor, cursor_ms }: Embedding) =>
  view.scan('memories_by_age', '', { order: cursor_ms, key: cursor })

/**
 * Begins with up to `limit` notes: what failed before and is due again, else what changed. They
 * count as tried from here on, so that a note which ends the process is put aside all the same.
 */
export function beginNotes(view: View, limit: number, duty: Duty): string[] {
  checkDuty(view, duty)
  const again = dueAgain(view, limit)
  const ids = again.length > 0 ? again.map(({ memory_id }) => memory_id) : nextBehind(view, limit)
  for (const [i, memory_id] of ids.entries()) {
    const { attempts = 0, asked_at = view.at } = again[i] ?? {}
    const tried = { attempts: attempts + 1, next_ms: view.now, error: GONE, asked_at }
    view.put('note_attempt', { memory_id, state: 'waiting', ...tried })
  }
  return ids
}

/** One that was tried too often is taken alone: if it ends the process, no other fails with it. */
function dueAgain(view: View, limit: number): NoteAttempt[] {
  const due: NoteAttempt[] = []
  const over: NoteAttempt[] = []
  for (const waiting of view.due('note_attempts', 'waiting', view.now)) {
    if (due.length + over.length === limit) break
    if (waiting.attempts >= ATTEMPTS_MAX) {
      over.push(waiting)
      continue
    }
    const isSuspect = waiting.attempts >= SUSPECT_ATTEMPTS
    if (isSuspect && due.length > 0) break
    due.push(waiting)
    if (isSuspect) break
  }
  for (const each of over) putAside(view, each)
  return due
}

function nextBehind(view: View, limit: number): string[] {
  const now = view.get('embedding', 'embedding')
  const next: Memory[] = []
  for (const memory of now ? notesBehind(view, now) : []) {
    // Others may change at this very instant, and would then lie before the cursor.
    if (memory.updated_ms >= view.now || next.push(memory) === limit) break
  }
  const last = next.at(-1)
  if (now && last) {
    view.put('embedding', { ...now, cursor: last.id, cursor_ms: last.updated_ms })
  }
  return next.map(({ id }) => id)
}

/** They can be read at least: what goes wrong from here on is counted anew. */
export function countAnew(view: View, ids: string[]): void {
  for (const id of ids) {
    const tried = view.get('note_attempt', id)
    if (tried && tried.attempts > 1) view.put('note_attempt', { ...tried, attempts: 1 })
  }
}

export function endNotes(view: View, ids: string[], duty: Duty): void {
  checkDuty(view, duty)
  for (const id of ids) view.remove('note_attempt', id)
}

/** It went wrong: waits twice as long each time, and is put aside at last with what went wrong. */
export function failNote(view: View, id: string, error: string, duty: Duty): void {
  checkDuty(view, duty)
  const tried = view.get('note_attempt', id)
  if (!tried) return
  const failed = { ...tried, error: error.slice(0, ERROR_MAX) }
  const pause_ms = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** (failed.attempts - 1))
  if (failed.attempts >= ATTEMPTS_MAX) putAside(view, failed)
  else view.put('note_attempt', { ...failed, next_ms: view.now + pause_ms })
}

function putAside(view: View, failed: NoteAttempt): void {
  view.put('note_attempt', { ...failed, state: 'dead' })
  const data = { kind: 'embed', subject: failed.memory_id, error: failed.error ?? '' }
  view.record('background_job.dead', { agent: '' }, data)
}

/** Tries again what was put aside; the event wakes the process that does it. Returns how many. */
export function retryDead(view: View, limit: number, { agent }: Caller): number {
  const dead = [...firstOf(view.scan('note_attempts', 'dead'), limit)]
  for (const row of dead) {
    view.put('note_attempt', { ...row, state: 'waiting', attempts: 0, next_ms: view.now })
  }
  if (dead.length > 0) view.record('memory.retried', { agent }, { tried: dead.length })
  return dead.length
}

/** When the next is due, by the store's clock; null when nothing waits. */
export function nextDue(view: View): number | null {
  const now = view.get('embedding', 'embedding')
  const again = first(view.scan('note_attempts', 'waiting'))
  const behind = now && first(notesBehind(view, now))
  const due = [...(again ? [again.next_ms] : []), ...(behind ? [behind.updated_ms + 1] : [])]
  return due.length === 0 ? null : Math.min(...due)
}
