import { activeAlerts, showAlert } from '../core/stats/alert.ts'
import { lookNow } from '../core/stats/now.ts'
import { Refusal } from '../core/refusal.ts'
import { reportStats } from '../core/stats/report.ts'
import type { Damage } from '../stores/damage.ts'
import type { Trouble } from '../stores/writer/meter.ts'
import type { Store } from '../stores/writer/store.ts'
import * as answers from './answers/stats.ts'
import * as f from './fields.ts'
import { readOperation } from './operation.ts'

export const get = readOperation({
  name: 'stats.get',
  touches: 'whole',
  refuses: ['invalid'],
  needs: 'database',
  doc: 'Statistics over a period: contention, waits, holds, expiries, stale writes, fairness.',
  input: { since_seconds: f.since, from: f.fromTime, to: f.toTime, limit: f.top },
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
  refuses: [],
  doc: 'Active alerts: store trouble, expired locks, lost agents, long waits, an old queue.',
  input: {},
  output: answers.alerts,
  command: 'alert list',
  lookup: troubleOf,
  decide: (view, _input, _caller, _ticket, trouble) => {
    const kept = [...activeAlerts(view)].map(showAlert)
    return { items: [...(trouble ?? []), ...kept], next: null }
  },
})

/** Trouble of the store cannot be kept in the store: this process remembers it. */
async function troubleOf(store: Store): Promise<ShownAlert[]> {
  // The look finds out whether there is damage; the answer says what it met.
  await store.head().catch(() => undefined)
  const { damage, meter } = store
  const found = meter.trouble ? [showTrouble(meter.trouble)] : []
  return damage ? [showDamage(damage), ...found] : found
}

function showDamage({ message, since }: Damage): ShownAlert {
  const rule = 'store_damaged'
  return {
    id: `${rule}@${since}`,
    rule,
    subject: 'the store',
    message,
    since,
    told: false,
    undelivered: [],
  }
}

export function showTrouble({ message, since, told }: Trouble): ShownAlert {
  const id = `store_trouble@${since}`
  return { id, rule: 'store_trouble', subject: 'the store', message, since, told, undelivered: [] }
}

export type ShownAlert = ReturnType<typeof showAlert>

export const now = readOperation({
  name: 'now.get',
  touches: 'whole',
  refuses: [],
  doc: 'What is happening now: running tasks, slots, queues, locks, waiters and alerts.',
  input: { limit: f.limit },
  output: answers.now,
  lookup: troubleOf,
  decide: (view, { limit }, _caller, _ticket, trouble) => {
    const { alerts, ...look } = lookNow(view, limit)
    return { ...look, alerts: [...(trouble ?? []), ...alerts] }
  },
})
