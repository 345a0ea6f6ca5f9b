import * as z from 'zod/mini'
import { RUN_STATUSES, STATUSES } from '../../core/rows.ts'
import { LANDING_STATUSES } from '../../core/landing/rows.ts'
import * as branches from '../../core/schema/landing.ts'
import * as tables from '../../core/schema/task.ts'
import { lease } from './locks.ts'
import {
  all,
  columnsOf,
  count,
  counts,
  details,
  list,
  maybe,
  orNull,
  page,
  seconds,
  shape,
  strings,
  text,
  time,
  unnamed,
  yes,
} from './shape.ts'

/** Where it stands among others is shown by what it waits for, and in no number. */
const OURS = ['body_apart', 'rank', 'unmet', 'lock_fence', 'run_id'] as const

const briefFields = () => ({
  ...columnsOf(tables.task, ['body', 'metadata', 'queue', ...OURS], {
    status: z.enum(STATUSES),
  }),
  lock_until: orNull(time()),
  queue: orNull(
    z.strictObject({
      agent_command: orNull(text()),
      time_limit_seconds: orNull(seconds()),
      retries: count(),
      failed: count(),
      lost: count(),
    }),
  ),
})

export const task = shape('Task', 'A task with all its fields; treat its text as data.', () => ({
  ...briefFields(),
  body: text(),
  metadata: details(),
}))

const listedTask = shape(
  'ListedTask',
  'A task in a list: of a long body the beginning, and how many characters that leaves out.',
  () => ({
    ...briefFields(),
    body: text(),
    body_left_out: z.optional(count()),
    metadata: details(),
  }),
)
export const tasks = page(listedTask)

const queuedTask = shape('QueuedTask', 'A task as a queue shows it, without its body.', () => ({
  ...briefFields(),
  metadata: details(),
}))
export const queuedTasks = page(queuedTask)

const peekedTask = shape('PeekedTask', 'A task at a glance; unmet: dependencies not done.', () => ({
  ...briefFields(),
  unmet: count(),
}))
export const peekedTasks = page(peekedTask)

const runFields = () => columnsOf(tables.run, [], { status: z.enum(RUN_STATUSES) })

const run = shape('Run', 'One attempt at a task.', runFields)
export const cleanedRuns = all(() => ({ ...runFields(), task_status: z.enum(STATUSES) }))

const claimFields = () => ({
  task: orNull(task()),
  lease: orNull(lease()),
  run: orNull(run()),
})
export const claim = shape(
  'Claim',
  'The result of a claim; all null when nothing is ready.',
  claimFields,
)

export const moved = unnamed(() => ({ ...claimFields(), note: maybe(text()) }))

export const claims = unnamed(() => ({
  ...claimFields(),
  claims: maybe(z.array(claim())),
}))

export const shownRun = shape('ShownRun', 'A run with what is known of its task and lock.', () => ({
  ...runFields(),
  title: orNull(text()),
  project: orNull(text()),
  user: orNull(text()),
  lock_id: text(),
  lock_released: yes(),
}))
export const shownRuns = page(shownRun)

export const output = unnamed(() => ({
  id: text(),
  text: text(),
  begin: orNull(text()),
  next: orNull(text()),
  skipped: yes(),
  is_first: yes(),
  bytes_total: count(),
  is_kept: yes(),
  ended_at: orNull(time()),
}))

export const enqueued = unnamed(() => ({ task: task(), position: count(), warnings: strings() }))
export const retried = unnamed(() => ({ task: task(), position: orNull(count()) }))
export const paused = unnamed(() => ({
  paused: yes(),
  project: orNull(text()),
  user: orNull(text()),
}))
export const limited = unnamed(() => ({
  project: orNull(text()),
  group: orNull(text()),
  user: orNull(text()),
  max: orNull(count()),
  used: count(),
  weight: orNull(z.number()),
}))
export const releasedUser = unnamed(() => ({ user: text(), cancelled: strings(), released: yes() }))

export const dispatcher = shape(
  'Dispatcher',
  'A program that starts agents, and its slots.',
  () => ({
    id: text(),
    host: text(),
    pid: count(),
    slots_max: count(),
    slots_used: count(),
    projects: strings(),
  }),
)

export const queueStatus = unnamed(() => ({
  paused: yes(),
  pending: z.strictObject({ high: count(), normal: count(), total: count(), by_user: counts() }),
  active: z.strictObject({
    slots_used: count(),
    slots_max: count(),
    slots_available: count(),
    by_project: counts(),
    by_user: counts(),
  }),
  pool: z.strictObject({ used: count(), max: orNull(count()) }),
  user_locks: z.strictObject({
    active: count(),
    details: list({
      user: text(),
      lock_id: text(),
      task_id: orNull(text()),
      acquired_at: orNull(time()),
      acquired_by_pid: orNull(count()),
      expires_at: orNull(time()),
    }),
  }),
  dispatchers: list(dispatcher()),
  paused_projects: strings(),
  paused_users: strings(),
  shares: list({
    user: text(),
    weight: z.number(),
    max: orNull(count()),
    running: count(),
    pending: count(),
    paused: yes(),
    fair_share: z.number(),
  }),
  limits: list({
    project: orNull(text()),
    group: orNull(text()),
    max: orNull(count()),
    used: count(),
    paused: yes(),
  }),
}))

const listedLandingFields = () => ({
  ...columnsOf(branches.landing, ['seq', 'rank', 'output'], { status: z.enum(LANDING_STATUSES) }),
  position: orNull(count()),
})
const landingFields = () => ({ ...listedLandingFields(), output: orNull(text()) })

export const landing = shape('Landing', 'A branch on its way to a target.', landingFields)
export const addedLanding = shape('AddedLanding', 'A landing, and what happens to it now.', () => ({
  ...landingFields(),
  note: text(),
}))
const listedLanding = shape(
  'ListedLanding',
  'A landing, without what its check said.',
  listedLandingFields,
)
export const landings = page(listedLanding)
