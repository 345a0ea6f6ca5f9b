import { SPAN_ENDINGS } from '../../core/stats/span.ts'
import type { ShownEvent } from '../../core/event.ts'
import * as z from 'zod/mini'
import * as callers from '../../core/schema/caller.ts'
import * as tables from '../../core/schema/lock.ts'
import { CODES } from '../../core/reasons/reasons.ts'
import {
  all,
  columnsOf,
  count,
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

const leaseFields = () => ({
  name: text(),
  holder: text(),
  fence: count(),
  lock_id: text(),
  acquired_at: time(),
  expires_at: time(),
  expires_in_seconds: seconds(),
  ttl_seconds: seconds(),
  pid: maybe(count()),
  host: maybe(text()),
})

export const lease = shape('Lease', 'One grant of a lock.', leaseFields)
export const leases = shape('Leases', 'Several grants at once.', all(lease))
export const granted = unnamed(() => z.union([lease(), leases()]))

const heldLock = shape('HeldLock', 'A lease as lists show it, with the task behind it.', () => ({
  ...leaseFields(),
  task_id: maybe(text()),
}))
export const heldLocks = page(heldLock)
export const peekedLocks = all(heldLock)

/** The locks of `now.get`: with who waits for each. */
export const awaitedLock = () => ({ ...leaseFields(), waiters: strings() })

const releasedLock = () => ({ name: text(), fence: count(), released: yes() })
export const released = unnamed(() =>
  z.union([z.strictObject(releasedLock()), all(releasedLock)()]),
)
export const forceReleased = unnamed(() => ({ ...releasedLock(), holder: text() }))

export const lockStatus = unnamed(() => ({
  name: text(),
  is_locked: yes(),
  lock_holder: orNull(text()),
  lock_expires_at: orNull(time()),
  expires_in_seconds: orNull(seconds()),
  fence: orNull(count()),
  lock_id: orNull(text()),
  acquired_at: orNull(time()),
  task_id: maybe(text()),
  pid: maybe(count()),
  host: maybe(text()),
  waiters: list({ position: count(), agent: text(), asked_at: time(), priority: count() }),
}))

export const waiters = page(() => ({
  id: text(),
  agent: text(),
  names: strings(),
  priority: count(),
  asked_at: time(),
  called: yes(),
}))

export const remedy = shape('Remedy', 'What can be done: a call, as it stands here.', () => ({
  says: text(),
  operation: text(),
  input: details(),
  admin: yes(),
}))

export const explanation = shape('Explanation', 'Why a task or a waiter has to wait.', () => ({
  sentence: text(),
  reasons: list({ code: z.enum(CODES), sentence: text(), details: details() }),
  chain: strings(),
  next: text(),
  actions: list({ says: text(), operation: maybe(text()), input: maybe(details()) }),
}))

export const reservation = shape('Reservation', 'A lease on paths of a project.', () => ({
  ...leaseFields(),
  path: text(),
  project: orNull(text()),
  checkout: orNull(text()),
  shared: yes(),
  reason: orNull(text()),
}))
export const reserved = unnamed(() => ({
  items: list(reservation()),
  warnings: strings(),
  next: z.null(),
}))
export const reservations = page(reservation)
export const touched = unnamed(() => ({
  renewed: count(),
  warnings: strings(),
  words: strings(),
  reserved: list(reservation()),
}))
/** `told`: the holder will read of it. */
export const toldPaths = all(() =>
  z.union([
    z.strictObject({ path: text(), told: yes(), state: z.literal('free') }),
    z.strictObject({
      path: text(),
      told: yes(),
      state: z.enum(['held', 'mine']),
      holder: text(),
      expires_at: time(),
    }),
  ]),
)
export const unreserved = all(() => ({
  name: text(),
  fence: count(),
  path: orNull(text()),
  released: yes(),
}))
export const checkedPaths = all(() =>
  z.union([
    z.strictObject({ path: text(), state: z.literal('free') }),
    z.strictObject({
      path: text(),
      state: z.enum(['held', 'mine']),
      holder: text(),
      expires_at: time(),
      expires_in_seconds: seconds(),
      shared: yes(),
      reason: orNull(text()),
      reserved: text(),
      name: text(),
      fence: count(),
      by_you: yes(),
    }),
  ]),
)

export const agents = page(() => ({
  ...columnsOf(tables.agent, ['last_seen_ms'], {}),
  holds: strings(),
}))

/** What a token is bound to of one kind; `all`: to none of them, and it is open to all. */
const scopeNames = () => orNull(z.union([strings(), z.literal('all')]))

export const token = shape('Token', 'A token without its secret.', () =>
  columnsOf(callers.token, ['hash', 'expires_ms'], {
    role: z.enum(['viewer', 'agent', 'admin']),
    scope: orNull(
      z.strictObject({ users: scopeNames(), projects: scopeNames(), task: orNull(text()) }),
    ),
  }),
)
export const tokens = page(token)

const event = () => ({
  position: count(),
  at: time(),
  type: text(),
  agent: text(),
  lock: orNull(text()),
  task: orNull(text()),
  data: details(),
})

/** What `data` says depends on `type`: that is the table of `core/event.ts`, not of a schema. */
export const events = unnamed(() => ({
  items: list(event() as unknown as z.ZodMiniType<ShownEvent>),
  next: orNull(text()),
  looked_to: orNull(time()),
}))

export const spans = unnamed(() => ({
  items: list({
    kind: z.enum(['held', 'waited']),
    lock: text(),
    agent: text(),
    task: orNull(text()),
    user: orNull(text()),
    project: orNull(text()),
    fence: orNull(count()),
    from: time(),
    to: orNull(time()),
    ending: z.enum(SPAN_ENDINGS),
  }),
  next: orNull(text()),
  from: orNull(time()),
  to: time(),
}))

export const bypassed = unnamed(() => ({ recorded: z.literal(true) }))
