import * as z from 'zod/mini'
import { ABOUT_KINDS, SEVERITIES } from '../../core/reasons/reason.ts'
import { CODES } from '../../core/reasons/reasons.ts'
import { HEALTH_STATES } from '../../core/reasons/stuck.ts'
import { awaitedLock, remedy } from './locks.ts'
import {
  all,
  count,
  counts,
  list,
  orNull,
  seconds,
  shape,
  strings,
  text,
  time,
  unnamed,
  yes,
} from './shape.ts'
import { dispatcher } from './tasks.ts'

const about = shape('About', 'Something to look at.', () => ({
  kind: z.enum(ABOUT_KINDS),
  id: text(),
}))

const health = shape('Health', 'How the whole is, and why.', () => ({
  state: z.enum(HEALTH_STATES),
  why: text(),
}))

const cause = shape('Cause', 'One root of what is stuck.', () => ({
  id: text(),
  kind: z.enum(CODES),
  severity: z.enum(SEVERITIES),
  what: text(),
  why: text(),
  next: text(),
  since: orNull(time()),
  about: list(about()),
  tasks: count(),
  agents: count(),
  behind: count(),
  at_least: yes(),
  actions: list(remedy()),
}))

export const stuck = unnamed(() => ({
  at: time(),
  health: health(),
  items: list(cause()),
  more: count(),
}))

const alert = shape('Alert', 'A condition that needs attention now.', () => ({
  id: text(),
  rule: text(),
  subject: text(),
  message: text(),
  since: time(),
  told: yes(),
  undelivered: strings(),
  about: list(about()),
}))
export const alerts = all(alert)

export const now = unnamed(() => ({
  at: time(),
  health: health(),
  stuck: list(cause()),
  paused: yes(),
  slots: z.strictObject({ used: count(), max: count() }),
  dispatchers: list(dispatcher()),
  pending: z.strictObject({ high: count(), total: count() }),
  running: list({
    task_id: text(),
    title: text(),
    project: orNull(text()),
    user: orNull(text()),
    agent: orNull(text()),
    run_id: orNull(text()),
    pid: orNull(count()),
    host: orNull(text()),
    started_at: orNull(time()),
    expires_at: orNull(time()),
  }),
  queue: list({
    user: text(),
    pending: count(),
    running: count(),
    weight: z.number(),
    paused: yes(),
  }),
  locks: list(awaitedLock()),
  alerts: list(alert()),
  more: numbers(['running', 'queue', 'locks', 'alerts', 'stuck']),
}))

const spread = shape('Spread', 'How long things took.', () => ({
  count: count(),
  mean_seconds: orNull(seconds()),
  p50_seconds: orNull(seconds()),
  p90_seconds: orNull(seconds()),
  p99_seconds: orNull(seconds()),
}))

export const report = unnamed(() => ({
  from: time(),
  to: time(),
  resolution_seconds: seconds(),
  locks: numbers(LOCK_COUNTS),
  contended: list({ name: text(), refused: count(), waits: count(), waited_seconds: seconds() }),
  wait: spread(),
  hold: spread(),
  longest_waits: list({ lock: text(), agent: text(), waited_seconds: seconds(), at: time() }),
  agents: z.strictObject({ appeared: count(), lost: count() }),
  stale_writes: count(),
  tasks: numbers(TASK_COUNTS),
  queue: z.strictObject({
    enqueued: count(),
    started: count(),
    depth_now: count(),
    wait: spread(),
    dispatch: spread(),
  }),
  fairness: z.strictObject(fairness()),
  throughput: z.strictObject({ projects: ran(), users: ran(), agents: ran() }),
  commits: z.strictObject({
    count: count(),
    asks_mean: orNull(z.number()),
    asks_p50: orNull(z.number()),
    asks_p99: orNull(z.number()),
  }),
  refusals: counts(),
  events: counts(),
  series: list(point()),
  store: z.strictObject({ bytes: count(), free_bytes: count() }),
}))

const LOCK_COUNTS = [
  'acquisitions',
  'refused',
  'waits',
  'gave_up',
  'deadlocks',
  'handed_off',
  'expired',
  'died',
  'force_released',
] as const
const TASK_COUNTS = ['created', 'claimed', 'done', 'failed', 'cancelled', 'quarantined'] as const
const POINT_COUNTS = [
  'acquisitions',
  'refused',
  'waits',
  'expired',
  'died',
  'stale_writes',
  'enqueued',
  'claimed',
  'started',
  'done',
  'failed',
  'cancelled',
  'ended',
] as const
const POINT_TIMES = [
  'wait_p50_seconds',
  'wait_p95_seconds',
  'wait_p99_seconds',
  'hold_p50_seconds',
  'queue_p50_seconds',
  'queue_p95_seconds',
] as const

/** Fields that are all of one kind. */
const shapeOf = <N extends string, S>(names: readonly N[], kind: () => S) =>
  Object.fromEntries(names.map((name) => [name, kind()])) as Record<N, S>

const numbers = <N extends string>(names: readonly N[]) => z.strictObject(shapeOf(names, count))

/** Those with `_series`: how many, for each point of `series`. */
const ran = () =>
  list({
    name: text(),
    claimed: count(),
    ended: count(),
    failed: count(),
    run_seconds: seconds(),
    queue_p50_seconds: orNull(seconds()),
    queue_p95_seconds: orNull(seconds()),
    claimed_series: z.array(count()),
    ended_series: z.array(count()),
  })

const fairness = () => ({
  index: orNull(z.number()),
  users: list({
    user: text(),
    weight: z.number(),
    runs: count(),
    run_seconds: seconds(),
    share: z.number(),
    fair_share: z.number(),
  }),
})

const point = () => ({
  at: time(),
  ...shapeOf(POINT_COUNTS, count),
  ...shapeOf(POINT_TIMES, () => orNull(seconds())),
  is_open: yes(),
})
