import { alertsNow, type ShownAlert } from '../core/reasons/alert.ts'
import { lookNow } from '../core/reasons/now.ts'
import { Refusal } from '../core/refusal.ts'
import { reportStats } from '../core/stats/report.ts'
import { alertsOf, healthOf, lookStuck } from '../core/reasons/stuck.ts'
import type { Trouble } from '../stores/writer/meter.ts'
import type { Store } from '../stores/writer/store.ts'
import * as answers from './answers/stats.ts'
import * as f from './fields.ts'
import { field, onDatabase, readOperation } from './operation.ts'
import * as s from './schemas.ts'

export const get = onDatabase.read({
  name: 'stats.get',
  touches: 'whole',
  refuses: ['invalid'],
  doc: 'Statistics over a period: contention, waits, holds, expiries, stale writes, fairness.',
  input: {
    since_seconds: field(
      () => s.or(s.seconds(1, 60 * 86_400), 86_400),
      'How far back to look (default 24h); up to 2h by the minute, beyond that by the hour.',
    ),
    from: f.fromTime,
    to: f.toTime,
    limit: field(
      () => s.or(s.whole(1, 50), 10),
      'Maximum number of locks, waits and users (default 10).',
    ),
  },
  output: answers.report,
  command: 'stats',
  lookup: (store) => store.counter.bytes(),
  decide: (view, { since_seconds, from, to, limit }, _caller, _ticket, size) => {
    const to_ms = to === undefined ? view.wall : Date.parse(to)
    const from_ms = from === undefined ? to_ms - since_seconds * 1000 : Date.parse(from)
    if (from_ms < to_ms) return { ...reportStats(view, { from_ms, to_ms, limit }), store: size! }
    throw new Refusal('invalid', 'from must be before to', {
      next: 'Swap the two, or leave one out.',
    })
  },
})

export const listAlerts = readOperation({
  name: 'alert.list',
  touches: 'whole',
  doc: 'Active alerts: store trouble, expired locks, lost agents, long waits, what needs a person.',
  input: {},
  output: answers.alerts,
  command: 'alert list',
  lookup: troubleOf,
  decide: (view, _input, caller, _ticket, trouble = []) => {
    const standing = alertsOf(lookStuck(view, caller, []), view.at)
    return { items: [...trouble, ...alertsNow(view), ...standing], next: null }
  },
})

export const stuck = readOperation({
  name: 'stuck.get',
  doc: 'What is stuck and why, by root cause, with what can be done; and how the whole is.',
  input: {
    limit: field(() => s.or(s.whole(1, 200), 20), 'Maximum number of causes (default 20).'),
  },
  output: answers.stuck,
  tool: 'stuck',
  command: 'stuck',
  lookup: troubleOf,
  decide: (view, { limit }, caller, _ticket, trouble = []) => {
    const causes = lookStuck(view, caller, trouble)
    const items = causes.slice(0, limit)
    return { at: view.at, health: healthOf(causes), items, more: causes.length - items.length }
  },
})

/** Trouble of the store cannot be kept in the store: this process remembers it. */
async function troubleOf(store: Store): Promise<ShownAlert[]> {
  // The look finds out whether there is damage; the answer says what it met.
  await store.head().catch(() => undefined)
  const { damage, meter } = store
  const found = meter.trouble ? [showTrouble(meter.trouble)] : []
  return damage ? [ofStore('store_damaged', { ...damage, told: false }), ...found] : found
}

export const showTrouble = (trouble: Trouble) => ofStore('store_trouble', trouble)

function ofStore(rule: string, { message, since, told }: Trouble): ShownAlert {
  const subject = 'the store'
  return { id: `${rule}@${since}`, rule, subject, message, since, told, undelivered: [], about: [] }
}

export const now = readOperation({
  name: 'now.get',
  touches: 'whole',
  doc: 'What is happening now: running tasks, slots, queues, locks, waiters and alerts.',
  input: { limit: f.limit },
  output: answers.now,
  lookup: troubleOf,
  decide: (view, { limit }, caller, _ticket, trouble = []) => lookNow(view, limit, caller, trouble),
})
