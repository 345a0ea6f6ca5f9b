import { PRIORITY_DEFAULT, TTL_MS_DEFAULT } from '../core/bounds.ts'
import { RUN_STATUSES, STATUSES } from '../core/rows.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields that operations share: one spelling, one meaning and one bound for each. */

export const lockName = field(s.lockName, 'Name of the lock: task:42, git:web, or any other.')
export const anyLockName = field(s.anyLockName, 'Name of the lock: task:42, git:web, or any other.')
export const lockNameAlone = field(() => s.optional(s.lockName()), 'The lock.', null)
export const anyLockNameAlone = field(() => s.optional(s.anyLockName()), 'The lock.', null)
export const lockedTask = field(
  s.someId,
  'Id of a task, instead of a name: its lock is meant. The task must exist.',
  null,
)
export const lockNames = field(() => s.optional(s.lockNames()), 'Several locks, all or nothing.')
export const releasedNames = field(
  () => s.optional(s.someNames()),
  'Several locks, all or nothing.',
)
export const ttlSeconds = field(
  () => s.or(s.ttl(), TTL_MS_DEFAULT / 1000),
  'How long the lease lasts unless it is renewed (default 5m).',
)
export const ttlSecondsOptional = field(
  () => s.optional(s.ttl()),
  'New TTL of the lease (default: unchanged).',
)
export const waitSeconds = field(
  () => s.or(s.seconds(0, 24 * 3600), 0),
  'If the lock is held, wait in line for up to this long.',
)
export const waitForTask = field(
  () => s.or(s.seconds(0, 24 * 3600), 0),
  'If no task is ready, wait up to this long for one, in order of arrival.',
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
export const linePriority = field(
  () => s.or(s.level(), PRIORITY_DEFAULT),
  'Priority in the line, 0–9 (default 5). Waiting time counts too, so nobody starves.',
)
export const agentId = field(() => s.plain(256), 'Who is asking.')
export const toAgent = field(() => s.plain(256), 'The agent that gets the lock.', '--to <agent>')
export const reason = field(() => s.optional(s.plain(500)), 'The reason, kept in the event log.')
export const taskId = field(s.id, 'The task.')
export const taskIdToClaim = field(s.someId, 'The task (default: the next ready one).')
export const claimsMax = field(
  () => s.optional(s.whole(1, 100)),
  'Claim up to this many of the next ready tasks at once; `claims` has them all.',
)
export const taskIdOptional = field(s.someId, 'An id of your own (default: the next number).')
export const status = field(s.status, `One of ${STATUSES.join(', ')}.`)
export const version = field(s.count, 'The version you read; refused if the task changed since.')

export const statusOptional = field(() => s.optional(s.status()), 'Only tasks with this status.')
export const onlyReady = field(
  s.flag,
  'Only tasks that can be claimed now, in the order of claiming.',
)
export const filterProject = field(s.someName, 'Only tasks of this project.')
export const filterLabel = field(() => s.optional(s.plain(100)), 'Only tasks with this label.')
export const filterPriority = field(
  () => s.optional(s.level()),
  'Only tasks with at least this priority.',
)
export const secretHash = field(
  s.hexDigest,
  'SHA-256 of the secret, as hex; the secret itself is never sent.',
)
export const role = field(s.role, 'What the token may do: viewer, agent or admin.')
export const tokenAgent = field(
  () => s.or(s.nullable(s.plain(256)), null),
  'The agent that the token stands for.',
)
export const tokenUsers = field(
  () => s.or(s.nullable(s.names()), null),
  'Bind the token to this user (repeatable).',
  '--user <name...>',
)
export const tokenProjects = field(
  () => s.or(s.nullable(s.names()), null),
  'Bind the token to this project (repeatable).',
  '--project <name...>',
)
export const allUsers = field(
  s.flag,
  'Open to it what is only of users, of all: else that is shut for a token bound to projects.',
)
export const allProjects = field(
  s.flag,
  'Open to it what is only of projects, of all: else that is shut for a token bound to users.',
)
export const tokenTtl = field(
  () => s.optional(s.seconds(1, 10 * 365 * 86_400)),
  'How long the token is valid (default: until it is revoked).',
)
export const tokenId = field(() => s.plain(64), 'Id of the token, as shown by token list.')
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

export const filterText = field(
  s.someName,
  'Only tasks with this in their id, title, project, user, agent or a label.',
)
export const peekedTasks = field(() => s.optional(s.ids()), 'Only these tasks.')
export const peekedLocks = field(s.anyNames, 'Names of the locks.')

export const queued = field(
  s.flag,
  'Also take enqueued tasks, which are normally left to dispatchers.',
)
export const filterUser = field(s.someName, 'Only tasks of this user.')
export const pausedProject = field(s.someName, 'Only this project.')
export const pausedUser = field(s.someName, 'Only this user.')
export const limitedProject = field(s.someName, 'Set the limit of this project.')
export const limitedGroup = field(s.someName, 'Set the limit of this group.')
export const limitedUser = field(s.someName, 'Set the limit or weight of this user.')
export const limitMax = field(
  () => s.optional(s.nullable(s.whole(0, 1_000_000))),
  'How many may run at once; null removes the limit.',
  '--max <n|null>',
)
export const weight = field(
  () => s.optional(s.numberIn(0.001, 1000)),
  "A user's share compared with other users (default 1).",
)
export const olderThan = field(
  () => s.optional(s.seconds(0, 365 * 86_400)),
  'Also end runs that are older than this.',
)
export const busyUser = field(s.name, 'The user.')
export const onlyTask = field(s.someId, 'Only this task.', '--task <id>')
export const runId = field(s.runId, 'The run: task.attempt, e.g. 42.1.')
export const runFence = field(s.count, 'The fence that the run was claimed under.')
export const runnerProcess = field(s.process, 'The process of the runner.')
export const runStatus = field(
  () => s.optional(s.runStatus()),
  `Only runs with this status: ${RUN_STATUSES.join(', ')}.`,
)
export const exitCode = field(
  () => s.or(s.nullable(s.whole(0, 255)), null),
  'Exit code of the command; null if a signal ended it.',
)
export const signal = field(
  () => s.or(s.nullable(s.plain(20)), null),
  'The signal that ended the command, if any.',
)
export const isLost = field(
  s.flag,
  'The run was ended because its lease was lost: the task goes back to the queue.',
)
export const endReason = field(
  () => s.or(s.nullable(s.plain(500)), null),
  'Why the runner ended the command, or could not start it.',
)

export const since = field(
  () => s.or(s.seconds(1, 60 * 86_400), 86_400),
  'How far back to look (default 24h); up to 2h by the minute, beyond that by the hour.',
)
export const fromTime = field(() => s.optional(s.instant()), 'Start at this time instead.')
export const toTime = field(() => s.optional(s.instant()), 'End at this time (default: now).')
export const top = field(
  () => s.or(s.whole(1, 50), 10),
  'Maximum number of locks, waits and users (default 10).',
)
