import * as z from 'zod/mini'
import { awaitedLock } from './locks.ts'
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

const alert = shape('Alert', 'A condition that needs attention now.', () => ({
  id: text(),
  rule: text(),
  subject: text(),
  message: text(),
  since: time(),
  told: yes(),
  undelivered: strings(),
}))
export const alerts = all(alert)

export const now = unnamed(() => ({
  at: time(),
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
  more: z.strictObject({ running: count(), queue: count(), locks: count() }),
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
  'stale_writes',
  'enqueued',
  'started',
  'done',
  'failed',
] as const

const shapeOf = <N extends string>(names: readonly N[]) =>
  Object.fromEntries(names.map((name) => [name, count()])) as Record<N, ReturnType<typeof count>>

const numbers = <N extends string>(names: readonly N[]) => z.strictObject(shapeOf(names))

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
  ...shapeOf(POINT_COUNTS),
  wait_p99_seconds: orNull(seconds()),
  hold_p50_seconds: orNull(seconds()),
})
