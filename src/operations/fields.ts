import { TTL_MS_DEFAULT } from '../core/bounds.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields that operations share: one spelling, one meaning and one bound for each. */

export const anyLockName = field(s.anyLockName, 'Name of the lock: task:42, git:web, or any other.')
export const anyLockNameAlone = field(() => s.optional(s.anyLockName()), 'The lock.', null)
export const lockedTask = field(
  s.someId,
  'Id of a task, instead of a name: its lock is meant. The task must exist.',
  null,
)
export const ttlSeconds = field(
  () => s.or(s.ttl(), TTL_MS_DEFAULT / 1000),
  'How long the lease lasts unless it is renewed (default 5m).',
)
export const ttlSecondsOptional = field(
  () => s.optional(s.ttl()),
  'New TTL of the lease (default: unchanged).',
)
export const fence = field(
  s.someCount,
  'The fence you were given: proves that the lease is still yours.',
)
export const takeover = field(
  s.flag,
  'Take the lock even if another process with the same agent id holds it.',
)
export const holderProcess = field(
  () => s.or(s.nullable(s.process()), null),
  'The process that holds the lease: when it dies, the lock is free at once.',
  '--pid <pid>',
)
export const group = field(s.processGroup, 'The process group that runs under the lease.')
export const agentId = field(() => s.plain(256), 'Who is asking.')
export const taskId = field(s.id, 'The task.')

export const statusOptional = field(() => s.optional(s.status()), 'Only tasks with this status.')
export const filterProject = field(s.someName, 'Only tasks of this project.')
export const filterLabel = field(() => s.optional(s.plain(100)), 'Only tasks with this label.')
export const secretHash = field(
  s.hexDigest,
  'SHA-256 of the secret, as hex; the secret itself is never sent.',
)
export const role = field(s.role, 'What the token may do: viewer, agent or admin.')
export const limit = field(
  () => s.or(s.whole(1, 1000), 100),
  'Maximum number of items (default 100).',
)
export const after = field(
  () => s.optional(s.plain(2000)),
  'Continue after the last page: the `next` that it returned.',
)

/** What every list has. */
export const page = { limit, after }

export const filterUser = field(s.someName, 'Only tasks of this user.')
export const onlyTask = field(s.someId, 'Only this task.', '--task <id>')
export const runId = field(s.runId, 'The run: task.attempt, e.g. 42.1.')
export const runFence = field(s.count, 'The fence that the run was claimed under.')
export const runnerProcess = field(s.process, 'The process of the runner.')

export const fromTime = field(() => s.optional(s.instant()), 'Start at this time instead.')
export const toTime = field(() => s.optional(s.instant()), 'End at this time (default: now).')
