import * as z from 'zod/mini'
import { PRIORITY_DEFAULT, TTL_MS_DEFAULT, TTL_MS_MAX, TTL_MS_MIN } from '../core/limits.ts'
import { STATUSES, type Status } from '../core/rows.ts'
import { type Field, field } from './operation.ts'

/** The fields that operations share: one spelling, one meaning and one bound for each. */

// Control characters would forge lines in logs and tables, and separate the parts of keys.
// oxlint-disable-next-line no-control-regex -- refusing them is the point
const CONTROL = /[\u0000-\u001f\u007f]/
const ID = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*$/

const NAME_MAX = 512
const ID_MAX = 64
const TITLE_MAX = 500
const BODY_MAX = 256 * 1024
const LIST_MAX = 100

function text(max: number) {
  return z
    .string('must be text')
    .check(
      z.minLength(1, 'must not be empty'),
      z.maxLength(max, `may have at most ${max} characters`),
    )
}

const plain = (max: number) =>
  text(max).check(z.refine((value) => !CONTROL.test(value), 'must not contain control characters'))

const lockNameSchema = plain(NAME_MAX).check(
  z.refine(
    (name) => !name.startsWith('path:'),
    'must not begin with path: (paths are reserved with: leasehold reserve add)',
  ),
)

const idSchema = text(ID_MAX).check(
  z.regex(ID, 'may contain only letters, digits, "-", "_" and single dots'),
)

const wholeNumber = (min: number, max: number) =>
  z
    .int(`must be a whole number`)
    .check(z.minimum(min, `must be at least ${min}`), z.maximum(max, `must be at most ${max}`))

function seconds(min: number, max: number) {
  return z
    .number('must be a number of seconds')
    .check(z.minimum(min, `must be at least ${min}`), z.maximum(max, `must be at most ${max}`))
}

const SPELLINGS: Record<string, Status> = {
  pending: 'todo',
  open: 'todo',
  running: 'in_progress',
  started: 'in_progress',
  completed: 'done',
  complete: 'done',
  canceled: 'cancelled',
  error: 'failed',
}

/** `In Progress`, `IN_PROGRESS` and `running` are all `in_progress`. */
const statusSchema = z.pipe(
  z.pipe(
    z.string('must be text'),
    z.transform((said: string) => {
      const word = said
        .trim()
        .toLowerCase()
        .replaceAll(/[\s-]+/g, '_')
      return SPELLINGS[word] ?? word
    }),
  ),
  z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`),
)

/** A process that the caller has looked up; `pid` alone would mean nothing on another host. */
const processSchema = z.strictObject({
  host: plain(256),
  seat: plain(256),
  pid: wholeNumber(1, 2 ** 31),
  start: wholeNumber(0, Number.MAX_SAFE_INTEGER),
})

const opt = <S extends z.ZodMiniType>(schema: S) => z.optional(schema)
const or = <S extends z.ZodMiniType>(schema: S, value: z.output<S>) =>
  z.pipe(
    z.optional(schema),
    z.transform((given) => given ?? value),
  )

const ttl = seconds(TTL_MS_MIN / 1000, TTL_MS_MAX / 1000)

export const lockName = field(lockNameSchema, 'The lock: task:42, git:web, anything.')
export const lockNames = field(
  z
    .array(lockNameSchema, 'must be a list of names')
    .check(
      z.minLength(1, 'must name at least one lock'),
      z.maxLength(LIST_MAX, `may have at most ${LIST_MAX} entries`),
    ),
  'The lock, or several: all or nothing.',
)
export const ttlSeconds = field(
  or(ttl, TTL_MS_DEFAULT / 1000),
  'How long the lease lasts unless it is renewed (default 5m).',
  '--ttl <duration>',
)
export const ttlSecondsOptional = field(
  opt(ttl),
  'A new length for the lease (default: the one it has).',
  '--ttl <duration>',
)
export const waitSeconds = field(
  or(seconds(0, 24 * 3600), 0),
  'Join the line and wait this long if it is held.',
  '--wait <duration>',
)
export const fence = field(
  opt(wholeNumber(1, Number.MAX_SAFE_INTEGER)),
  'The fence you were given: proves that the lease is still yours.',
  '--fence <n>',
)
export const takeover = field(
  or(z.boolean('must be true or false'), false),
  'Take it even if another process of the same agent id has it.',
)
export const holderProcess = field(
  or(z.nullable(processSchema), null),
  'The process that holds the lease: when it dies, the lock is free at once.',
  '--pid <pid>',
)
export const group = field(processSchema, 'The process group that runs under the lease.')
export const linePriority = field(
  or(wholeNumber(0, 9), PRIORITY_DEFAULT),
  'Place in the line, 0–9 (default 5). Waiting counts too, so nobody starves.',
  '--priority <n>',
)
export const toAgent = field(plain(256), 'The agent that gets it.', '--to <agent>')
export const reason = field(opt(plain(500)), 'Why; kept in the audit.', '--reason <text>')
export const requestId = field(
  opt(plain(200)),
  'Asking again with the same id has one effect and gets the same answer, for 24 hours.',
  '--request-id <id>',
)

export const taskId = field(idSchema, 'The task.')
export const taskIdToClaim = field(opt(idSchema), 'The task (default: the next ready one).')
export const onlyReady = field(
  or(z.boolean('must be true or false'), false),
  'Only tasks that can be claimed now, the next one first.',
)
export const taskIdOptional = field(opt(idSchema), 'An id of your own (default: the next number).')
export const status = field(statusSchema, `One of ${STATUSES.join(', ')}.`)
export const statusOptional = field(opt(statusSchema), 'Only tasks with this status.')

/** What a task says, as a person or agent may state it. Creating fills in what is left out. */
const nameOrNone = z.nullable(plain(200))
const said = {
  title: field(plain(TITLE_MAX), 'What the task is, in one line.', '--title <text>'),
  body: field(
    z
      .string('must be text')
      .check(z.maxLength(BODY_MAX, `may have at most ${BODY_MAX} characters`)),
    'The prompt, or all that needs to be known. "-" reads it from standard input.',
    '--body <text>',
  ),
  project: field(nameOrNone, 'The codebase that the task belongs to.', '--project <name>'),
  user: field(nameOrNone, 'The person the task runs for.', '--user <name>'),
  priority: field(
    wholeNumber(0, 9),
    'How urgent, 0–9 (default 5; 7 and up count as high).',
    '--priority <n>',
  ),
  group: field(nameOrNone, 'Tasks of one group follow each other.', '--group <name>'),
  labels: field(
    z.array(plain(100)).check(z.maxLength(LIST_MAX, `may have at most ${LIST_MAX} entries`)),
    'A word to find it by; give it several times for several.',
    '--label <label...>',
  ),
  depends_on: field(
    z.array(idSchema).check(z.maxLength(LIST_MAX, `may have at most ${LIST_MAX} entries`)),
    'A task that must be done first; give it several times for several.',
    '--depends-on <id...>',
  ),
  assigned_to: field(nameOrNone, 'Only this agent may claim it.', '--assigned-to <agent>'),
  metadata: field(
    z.record(z.string(), z.unknown(), 'must be a JSON object'),
    'Anything else, as a JSON object.',
    '--metadata <json>',
  ),
}

const filled = <S extends z.ZodMiniType>(of: Field<S>, value: z.output<S>) => ({
  ...of,
  schema: or(of.schema, value),
})
const unchanged = <S extends z.ZodMiniType>(of: Field<S>) => ({ ...of, schema: opt(of.schema) })

export const newTask = {
  title: said.title,
  body: filled(said.body, ''),
  project: filled(said.project, null),
  user: filled(said.user, null),
  priority: filled(said.priority, PRIORITY_DEFAULT),
  group: filled(said.group, null),
  labels: filled(said.labels, []),
  depends_on: filled(said.depends_on, []),
  assigned_to: filled(said.assigned_to, null),
  metadata: filled(said.metadata, {}),
}

/** The same fields in an edit: what is absent stays as it is. */
export const editedTask = {
  title: unchanged(said.title),
  body: unchanged(said.body),
  project: unchanged(said.project),
  user: unchanged(said.user),
  priority: unchanged(said.priority),
  group: unchanged(said.group),
  labels: unchanged(said.labels),
  depends_on: unchanged(said.depends_on),
  assigned_to: unchanged(said.assigned_to),
  metadata: unchanged(said.metadata),
}

export const version = field(
  wholeNumber(1, Number.MAX_SAFE_INTEGER),
  'The version you read; refused if the task changed since.',
  '--version <n>',
)
export const filterProject = field(
  opt(plain(200)),
  'Only tasks of this project.',
  '--project <name>',
)
export const filterLabel = field(opt(plain(100)), 'Only tasks with this label.', '--label <label>')
export const filterPriority = field(
  opt(wholeNumber(0, 9)),
  'Only tasks of at least this priority.',
  '--priority <n>',
)
export const limit = field(or(wholeNumber(1, 1000), 100), 'At most so many.', '--limit <n>')
export const after = field(opt(z.string()), 'Go on behind the last page: its `next`.')
