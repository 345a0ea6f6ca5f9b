/** Why something does not run: a code for programs, a sentence for people. */
type ReasonCode =
  | 'running'
  | 'ended'
  | 'dependency'
  | 'locked'
  | 'promised'
  | 'assigned'
  | 'ready'
  | 'paused'
  | 'user_busy'
  | 'project_limit'
  | 'group_limit'
  | 'pool_limit'
  | 'order'
  | 'no_dispatcher'
  | 'unserved'
  | 'no_slot'
  | 'waiting'

export interface Reason {
  code: ReasonCode
  sentence: string
  details: Record<string, unknown>
}
