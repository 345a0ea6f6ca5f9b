/** Why something does not run: a code for programs, a sentence for people. */
export const REASON_CODES = [
  'running',
  'ended',
  'dependency',
  'locked',
  'promised',
  'assigned',
  'ready',
  'paused',
  'user_busy',
  'project_limit',
  'group_limit',
  'pool_limit',
  'order',
  'no_dispatcher',
  'unserved',
  'no_slot',
  'waiting',
] as const

export interface Reason {
  code: (typeof REASON_CODES)[number]
  sentence: string
  details: Record<string, unknown>
}
