import type { Cursor } from '../schema/indexes.ts'
import { admits, subagents } from '../caller.ts'
import { isPattern } from './glob_syntax.ts'
import type { View } from '../view.ts'

/** What an agent and those nested under it keep in the store. */
export interface HeldCounts {
  leases: number
  /** Reservations of more than one path. */
  globs: number
  tasks_waiting: number
}

/** Leases of `agent` and of those nested under it, and how many of them are of patterns. */
export function leasesHeld(view: View, agent: string): Pick<HeldCounts, 'leases' | 'globs'> {
  const held = { leases: 0, globs: 0 }
  for (const each of subagents(view, agent)) {
    for (const { path } of view.scan('leases_held_by', each)) {
      held.leases += 1
      if (path && isPattern(path.glob)) held.globs += 1
    }
  }
  return held
}

/** How many tasks are looked at in one step: others are answered between two steps. */
const STEP = 500

/**
 * Of the waiting tasks behind `after`, how many `agent` or one nested under it made; and where to
 * go on, undefined at the end.
 */
export function tasksMade(
  view: View,
  agent: string,
  after: Cursor | undefined,
): { made: number; next: Cursor | undefined } {
  let made = 0
  let looked = 0
  for (const { id, rank, created_by } of view.scan('tasks_with_status', 'todo', after)) {
    if (admits(agent, created_by)) made += 1
    looked += 1
    if (looked === STEP) return { made, next: { order: rank, key: id } }
  }
  return { made, next: undefined }
}
