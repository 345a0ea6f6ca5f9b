import type { Caller } from '../caller.ts'
import type { View } from '../view.ts'
import { activeAlerts, type ShownAlert } from './alert.ts'
import { type Cause, causeOf, type Health, SEVERITIES } from './cause.ts'
import { endCauses } from './stuck_ends.ts'
import { circleCauses, deadlockCause, lockCauses } from './stuck_locks.ts'
import { queueCauses } from './stuck_queue.ts'

/**
 * What is stuck, by root cause, the worst first. `trouble` is what the store itself cannot keep:
 * that it cannot be written, say. Counters and indexes tell it all, so the cost does not grow with
 * the number of tasks.
 */
export function lookStuck(view: View, caller: Caller, trouble: ShownAlert[]): Cause[] {
  const locks = lockCauses(view)
  const known = new Set(locks.map(({ id }) => id))
  const causes = [
    ...trouble.map(troubleCause),
    ...queueCauses(view, caller),
    ...endCauses(view, caller),
    ...locks,
    ...circleCauses(view, caller),
    ...deadlocks(view).filter(({ id }) => !known.has(id)),
  ]
  const rank = ({ severity }: Cause) => SEVERITIES.indexOf(severity)
  const size = ({ tasks, agents }: Cause) => tasks + agents
  return causes.toSorted((a, b) => rank(a) - rank(b) || size(b) - size(a))
}

function troubleCause({ id, rule, message, since }: ShownAlert): Cause {
  const kind = rule === 'store_damaged' ? 'store_damaged' : 'store_trouble'
  const what = `The store cannot be used as it should: ${message}`
  const next = 'See what is wrong with it: leasehold doctor'
  return causeOf({ id, kind, severity: 'bad', what, why: message, next, since })
}

/** Whoever was let go has left its line; that it was is remembered for a while. */
const deadlocks = (view: View) =>
  [...activeAlerts(view)]
    .filter(({ rule }) => rule === 'deadlock')
    .map(({ subject, message, since_at }) => deadlockCause(subject, message, since_at))

/** How the whole is, in a word and a sentence. Causes come the worst first. */
export function healthOf(causes: readonly Cause[]): Health {
  const store = causes.find(({ kind }) => kind.startsWith('store_'))
  if (store) return { state: 'degraded', why: store.what }
  const paused = causes.find(({ id }) => id === 'paused:')
  if (paused) return { state: 'paused', why: paused.what }
  const [first] = causes
  return first?.severity === 'bad'
    ? { state: 'degraded', why: first.what }
    : { state: 'ok', why: '' }
}
