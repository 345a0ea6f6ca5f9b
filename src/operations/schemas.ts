import * as z from 'zod/mini'
import { LANDING_STATUSES } from '../core/landing/rows.ts'
import { attempt } from '../core/attempt.ts'
import { GLOB_MAX, parseGlob } from '../core/paths/glob.ts'
import { TTL_MS_MAX, TTL_MS_MIN } from '../core/bounds.ts'
import { MODES } from '../core/paths/touch.ts'
import { MARK_FORM, PID_MAX, RUN_STATUSES, type Status, STATUSES } from '../core/rows.ts'

/**
 * The shapes of input values, with their bounds and the words for what is wrong with one. Each is a
 * function: a schema is built when its operation is first asked, which keeps start-up short.
 */

// Control characters would forge lines in logs and tables, and separate the parts of keys.
// oxlint-disable-next-line no-control-regex -- refusing them is the point
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/
const ID = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*$/
const RUN_ID = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*\.[1-9]\d{0,8}$/

const NAME_MAX = 512
const ID_MAX = 64
const LIST_MAX = 100
const DEPTH_MAX = 50

const atMost = (max: number) => z.maxLength(max, `may have at most ${max} characters`)
const entries = (max = LIST_MAX) => z.maxLength(max, `may have at most ${max} entries`)

export const text = (max: number) => z.string('must be text').check(atMost(max))

export const plain = (max: number) =>
  text(max).check(
    z.minLength(1, 'must not be empty'),
    z.refine((value) => !CONTROL.test(value), 'must not contain control characters'),
  )

export const lockName = () =>
  plain(NAME_MAX).check(
    z.refine(
      (name) => !name.startsWith('path:'),
      'must not begin with path: (paths are reserved, not locked)',
    ),
  )

/** Locks of paths too: they are renewed and released like any other. */
export const anyLockName = () => plain(NAME_MAX)

/** An empty text stands for none, where null cannot be said. */
export const orNone = (max: number) => z.union([z.literal(''), plain(max)], 'must be text')

export const paths = (min: number, max = LIST_MAX) =>
  z
    .array(plain(GLOB_MAX), 'must be a list of paths')
    .check(z.minLength(min, 'must name at least one path'), entries(max))

const TOUCHES_MAX = 20
const isGlob = (said: string) => attempt(() => parseGlob(said) !== undefined, false)

/** What a task will change. */
export const touches = () =>
  paths(0, TOUCHES_MAX).check(
    z.refine((all) => all.every(isGlob), 'must be paths or globs within the checkout: src/**'),
  )

export const mode = () => z.enum(MODES, `must be one of ${MODES.join(', ')}`)

export const lockNames = () =>
  z
    .array(lockName(), 'must be a list of names')
    .check(z.minLength(1, 'must name at least one lock'), entries())

/** Names of any kind of lock, also of those that are taken by other means. */
export const someNames = () => anyNames().check(z.minLength(1, 'must name at least one lock'))
export const anyNames = () => z.array(plain(NAME_MAX), 'must be a list of names').check(entries())

export const id = () =>
  z
    .string('must be text')
    .check(
      z.minLength(1, 'must not be empty'),
      atMost(ID_MAX),
      z.regex(ID, 'may contain only letters, digits, "-", "_" and single dots'),
    )

export const runId = () =>
  z
    .string('must be text')
    .check(atMost(ID_MAX + 12), z.regex(RUN_ID, 'must be a task and an attempt: 42.1'))

export const outputPlace = () =>
  z.string('must be text').check(z.regex(/^\d{1,20}-\d{1,15}$/, 'must be the `next` of a piece'))
export const outputEnd = () => z.enum(['first', 'last'], 'must be first or last')

export const runStatus = () => z.enum(RUN_STATUSES, `must be one of ${RUN_STATUSES.join(', ')}`)

export const ids = () => z.array(id(), 'must be a list of ids').check(entries())
export const words = () => z.array(plain(100), 'must be a list of words').check(entries())
/** Users or projects; an empty name stands for tasks that have none. */
export const names = () => z.array(orNone(200), 'must be a list of names').check(entries())
export const nameOrNone = () => z.nullable(name())
/** A field `__proto__` would be dropped on the way without a word. */
export const object = () =>
  z.pipe(
    z.unknown().check(
      z.refine((value) => !hasProto(value), 'must not have a field __proto__'),
      z.refine((value) => !isDeeper(value, DEPTH_MAX), `may nest at most ${DEPTH_MAX} levels deep`),
    ),
    z.record(z.string(), z.unknown(), 'must be a JSON object'),
  )

const hasProto = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, '__proto__')

/** Writing or reading JSON goes down level by level, and a program has only so much stack. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1))
}

export const yesOrNo = () => z.boolean('must be true or false')

export const whole = (min: number, max: number) =>
  z
    .int('must be a whole number')
    .check(z.minimum(min, `must be at least ${min}`), z.maximum(max, `must be at most ${max}`))

export const seconds = (min: number, max: number) =>
  z
    .number('must be a number of seconds')
    .check(z.minimum(min, `must be at least ${min}`), z.maximum(max, `must be at most ${max}`))

export const numberIn = (min: number, max: number) =>
  number().check(
    z.minimum(min, `must be at least ${min}`),
    z.maximum(max, `must be at most ${max}`),
  )

/** A time as the wire has it; any that JavaScript reads is understood. */
export const instant = () =>
  text(40).check(
    z.refine((value) => !Number.isNaN(Date.parse(value)), 'must be a time: 2026-11-15T09:00:00Z'),
  )

export const number = () => z.number('must be a number')
export const ttl = () => seconds(TTL_MS_MIN / 1000, TTL_MS_MAX / 1000)
export const count = () => whole(1, Number.MAX_SAFE_INTEGER)
export const level = () => whole(0, 9)

const WORDS: Record<Status, string> = {
  todo: 'to_do pending open new queued not_started unstarted',
  in_progress: 'inprogress progress running started active doing wip working ongoing',
  review: 'in_review reviewing needs_review ready_for_review for_review',
  done: 'completed complete finished closed resolved success succeeded',
  failed: 'failure fail error errored',
  cancelled: 'canceled cancel abandoned aborted wont_do',
}

const SPELLINGS = new Map(
  Object.entries(WORDS).flatMap(([status, said]) => said.split(' ').map((word) => [word, status])),
)

function spelled(said: string): string {
  const parts = said.trim().replaceAll(/([a-z])([A-Z])/g, '$1_$2')
  const word = parts
    .toLowerCase()
    .replaceAll("'", '')
    .split(/[\s_-]+/)
    .join('_')
  return SPELLINGS.get(word) ?? word
}

/** `In Progress`, `IN_PROGRESS` and `running` are all `in_progress`. */
export const status = () =>
  z.pipe(
    z.pipe(z.string('must be text'), z.transform(spelled)),
    z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`),
  )

export const role = () => z.enum(['viewer', 'agent', 'admin'], 'must be viewer, agent or admin')

export const hexDigest = () =>
  z.string('must be text').check(z.regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits'))

/** A process that the caller has looked up; `pid` alone would mean nothing on another host. */
export const process = () => z.strictObject(processFields())

const processFields = () => ({
  host: plain(256),
  seat: plain(256),
  pid: whole(1, PID_MAX),
  start: whole(0, Number.MAX_SAFE_INTEGER),
})

/** A group that a program of ours started, with the random mark that everything in it carries. */
export const processGroup = () =>
  z.strictObject({
    ...processFields(),
    // To signal the group 1 is to signal everything.
    pid: whole(2, PID_MAX),
    mark: z.string('must be text').check(z.regex(MARK_FORM, 'must be 32 hex digits')),
    grace_ms: z.optional(whole(0, 3600_000)),
    lets_go: z.optional(yesOrNo()),
  })

export const optional = z.optional
export const nullable = z.nullable

/** What many fields are: a name, an id, a number or a choice that may be left out. */
export const name = () => plain(200)
export const someName = () => optional(name())
export const someId = () => optional(id())
export const someCount = () => optional(count())
export const flag = () => or(yesOrNo(), false)

/** A branch as git may name it: nothing that could be read as an option or as two commits. */
const BRANCH = /^(?![-/.])(?!.*(?:\.\.|@\{|\/\/|\.lock$|[/.]$))[^\s~^:?*[\\]+$/u
export const branch = () => plain(200).check(z.regex(BRANCH, 'is no name of a branch'))
export const someBranch = () => optional(branch())
export const someCommit = () =>
  optional(z.string().check(z.regex(/^[0-9a-f]{40,64}$/, 'must be the whole id of a commit')))
export const someLandingStatus = () =>
  optional(z.enum(LANDING_STATUSES, `must be one of ${LANDING_STATUSES.join(', ')}`))

/** Left out, it is `value`. */
export const or = <S extends z.ZodMiniType>(schema: S, value: z.output<S>) =>
  // oxlint-disable-next-line no-underscore-dangle -- zod/mini has no other name for it
  z._default(schema, value as never)
