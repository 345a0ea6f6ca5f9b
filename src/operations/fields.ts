import { PRIORITY_DEFAULT, TTL_MS_DEFAULT } from '../core/bounds.ts'
import { RUN_STATUSES, STATUSES } from '../core/rows.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields that operations share: one spelling, one meaning and one bound for each. */

export const lockName = field(s.lockName, 'The lock: task:42, git:web, anything.')
export const anyLockName = field(s.anyLockName, 'The lock: task:42, git:web, anything.')
export const lockNameAlone = field(() => s.optional(s.lockName()), 'The lock.')
export const anyLockNameAlone = field(() => s.optional(s.anyLockName()), 'The lock.')
export const lockedTask = field(
  () => s.optional(s.id()),
  "A task, in place of a name: the task's lock. There must be such a task.",
)
export const lockNames = field(() => s.optional(s.lockNames()), 'Several locks: all or nothing.')
export const ttlSeconds = field(
  () => s.or(s.ttl(), TTL_MS_DEFAULT / 1000),
  'How long the lease lasts unless it is renewed (default 5m).',
  '--ttl <duration>',
)
export const ttlSecondsOptional = field(
  () => s.optional(s.ttl()),
  'A new length for the lease (default: the one it has).',
  '--ttl <duration>',
)
export const waitSeconds = field(
  () => s.or(s.seconds(0, 24 * 3600), 0),
  'Join the line and wait this long if it is held.',
  '--wait <duration>',
)
export const waitForTask = field(
  () => s.or(s.seconds(0, 24 * 3600), 0),
  'Wait this long for one to become ready, in order of arrival.',
  '--wait <duration>',
)
export const fence = field(
  () => s.optional(s.count()),
  'The fence you were given: proves that the lease is still yours.',
  '--fence <n>',
)
export const takeover = field(
  () => s.or(s.yesOrNo(), false),
  'Take it even if another process of the same agent id has it.',
  '--takeover',
)
export const holderProcess = field(
  () => s.or(s.nullable(s.process()), null),
  'The process that holds the lease: when it dies, the lock is free at once.',
  '--pid <pid>',
)
export const group = field(s.processGroup, 'The process group that runs under the lease.')
export const linePriority = field(
  () => s.or(s.level(), PRIORITY_DEFAULT),
  'Place in the line, 0–9 (default 5). Waiting counts too, so nobody starves.',
  '--priority <n>',
)
export const agentId = field(() => s.plain(256), 'Who is asking.')
export const toAgent = field(() => s.plain(256), 'The agent that gets it.', '--to <agent>')
export const reason = field(
  () => s.optional(s.plain(500)),
  'Why; kept in the audit.',
  '--reason <text>',
)
export const requestId = field(
  () => s.optional(s.plain(200)),
  'Asking again with the same id has one effect and gets the same answer, for 24 hours.',
  '--request-id <id>',
)

export const taskId = field(s.id, 'The task.')
export const taskIdToClaim = field(
  () => s.optional(s.id()),
  'The task (default: the next ready one).',
)
export const taskIdOptional = field(
  () => s.optional(s.id()),
  'An id of your own (default: the next number).',
  '--id <id>',
)
export const status = field(s.status, `One of ${STATUSES.join(', ')}.`)
export const version = field(
  s.count,
  'The version you read; refused if the task changed since.',
  '--version <n>',
)

export const statusOptional = field(
  () => s.optional(s.status()),
  'Only tasks with this status.',
  '--status <status>',
)
export const onlyReady = field(
  () => s.or(s.yesOrNo(), false),
  'Only tasks that can be claimed now, the next one first.',
  '--ready',
)
export const filterProject = field(
  () => s.optional(s.plain(200)),
  'Only tasks of this project.',
  '--project <name>',
)
export const filterLabel = field(
  () => s.optional(s.plain(100)),
  'Only tasks with this label.',
  '--label <label>',
)
export const filterPriority = field(
  () => s.optional(s.level()),
  'Only tasks of at least this priority.',
  '--priority <n>',
)
export const secretHash = field(
  () => s.hexDigest(),
  'SHA-256 of the secret, as hex: whoever makes the secret keeps it.',
)
export const role = field(s.role, 'What it may do: viewer, agent or admin.', '--role <role>')
export const tokenAgent = field(
  () => s.or(s.nullable(s.plain(256)), null),
  'The agent it stands for.',
)
export const tokenUsers = field(
  () => s.or(s.nullable(s.names()), null),
  'Bind it to this user; give it several times for several.',
  '--user <name...>',
)
export const tokenProjects = field(
  () => s.or(s.nullable(s.names()), null),
  'Bind it to this project; give it several times for several.',
  '--project <name...>',
)
export const tokenTtl = field(
  () => s.optional(s.seconds(1, 10 * 365 * 86_400)),
  'How long it counts (default: until revoked).',
  '--ttl <duration>',
)
export const tokenId = field(() => s.plain(64), 'The id that token list shows.')
export const limit = field(() => s.or(s.whole(1, 1000), 100), 'At most so many.', '--limit <n>')
export const after = field(
  () => s.optional(s.plain(2000)),
  'Go on behind the last page: its `next`.',
  '--after <next>',
)

export const filterText = field(
  () => s.optional(s.plain(200)),
  'Only tasks with this in their id, title, project, user, agent or a label.',
)
export const peekedTasks = field(() => s.optional(s.ids()), 'Only these tasks.')
export const peekedLocks = field(s.anyNames, 'The locks.')

export const queued = field(
  () => s.or(s.yesOrNo(), false),
  'Also take enqueued tasks, which are for dispatchers otherwise.',
  '--queued',
)
export const filterUser = field(
  () => s.optional(s.plain(200)),
  'Only tasks of this user.',
  '--user <name>',
)
export const pausedProject = field(
  () => s.optional(s.plain(200)),
  'Only this project.',
  '--project <name>',
)
export const pausedUser = field(() => s.optional(s.plain(200)), 'Only this user.', '--user <name>')
export const limitedProject = field(
  () => s.optional(s.plain(200)),
  'The limit of this project.',
  '--project <name>',
)
export const limitedGroup = field(
  () => s.optional(s.plain(200)),
  'The limit of this group.',
  '--group <name>',
)
export const limitedUser = field(
  () => s.optional(s.plain(200)),
  'The limit or weight of this user.',
  '--user <name>',
)
export const limitMax = field(
  () => s.optional(s.nullable(s.whole(0, 1_000_000))),
  'How many may run at once; null takes the limit away.',
  '--max <n|null>',
)
export const weight = field(
  () => s.optional(s.numberIn(0.001, 1000)),
  "A user's share compared to others (default 1).",
  '--weight <n>',
)
export const olderThan = field(
  () => s.optional(s.seconds(0, 365 * 86_400)),
  'Also end what runs longer than this.',
  '--older-than <duration>',
)
export const busyUser = field(() => s.plain(200), 'The user.')
export const onlyTask = field(() => s.optional(s.id()), 'Only this task.', '--task <id>')
export const runId = field(s.runId, 'The run: task.attempt, e.g. 42.1.')
export const runFence = field(s.count, 'The fence that the run was claimed under.')
export const runnerProcess = field(s.process, 'The process of the runner.')
export const runStatus = field(
  () => s.optional(s.runStatus()),
  `Only runs that are ${RUN_STATUSES.join(', ')}.`,
  '--status <status>',
)
export const exitCode = field(
  () => s.or(s.nullable(s.whole(0, 255)), null),
  'How the command exited; null if it did not.',
)
export const signal = field(
  () => s.or(s.nullable(s.plain(20)), null),
  'The signal that ended it, if one did.',
)
export const isLost = field(
  () => s.or(s.yesOrNo(), false),
  'It was ended for want of its lease: the task goes back to the queue.',
)
export const endReason = field(
  () => s.or(s.nullable(s.plain(500)), null),
  'Why the runner ended it, or could not begin it.',
)

export const since = field(
  () => s.or(s.seconds(1, 60 * 86_400), 86_400),
  'How far back to look (default 24h); up to 2h by the minute, beyond that by the hour.',
  '--since <duration>',
)
export const fromTime = field(
  () => s.optional(s.instant()),
  'Begin at this time instead.',
  '--from <time>',
)
export const toTime = field(
  () => s.optional(s.instant()),
  'End at this time (default: now).',
  '--to <time>',
)
export const top = field(
  () => s.or(s.whole(1, 50), 10),
  'At most so many locks, waits and users.',
  '--limit <n>',
)
