import { TASK_AGING_MS } from '../bounds.ts'

export const LANDING_STATUSES = ['waiting', 'landing', 'landed', 'returned', 'cancelled'] as const
export type LandingStatus = (typeof LANDING_STATUSES)[number]

/** Waiting counts as it does among tasks. Those of one instant are told apart by their number. */
export function rankOfLanding(asked_ms: number, priority: number, seq: number): string {
  const due_ms = Math.trunc(asked_ms) + (9 - priority) * TASK_AGING_MS
  return [due_ms, seq].map((each) => String(each).padStart(16, '0')).join('.')
}
