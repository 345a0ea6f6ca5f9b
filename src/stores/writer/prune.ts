import type { IndexName } from '../../core/schema/schema.ts'
import {
  boundFor,
  type Forgettable,
  FORGETTABLE,
  type Forgetting,
  forgetSome,
  placesOf,
  STEP_ROWS,
} from '../../core/forget.ts'
import { lastToForget, type Retention } from '../../core/retention.ts'
import type { View } from '../../core/view.ts'
import type { Store } from './store.ts'

/** Events that one step takes away. They have no indexes: it takes as long as fewer of others. */
const STEP_EVENTS = 500

/** How many of each kind are gone; what lost none is left out. */
export type Forgotten = Partial<Record<Forgettable | 'events', number>>

export interface Pruning {
  retention: Retention
  /** Only counts what would go: each step looks at the store as it is, and is dropped. */
  dry_run?: boolean
  /** Called between steps; others are served meanwhile. */
  rest?: () => Promise<void>
  signal?: AbortSignal
}

/**
 * Takes away what is over, kind by kind, as `retention` says: in steps that are each bounded in
 * rows, decided and committed among the asks of others. Two who do this at once take away no more
 * than one: where there are too many, the place up to which all go is found first.
 */
export async function forgetOld(store: Store, pruning: Pruning): Promise<Forgotten> {
  const forgotten: Forgotten = {}
  const count = (kind: keyof Forgotten, gone: number) => {
    if (gone > 0) forgotten[kind] = (forgotten[kind] ?? 0) + gone
  }
  for (const name of FORGETTABLE) {
    const { days, max } = boundFor(name, pruning.retention)
    for (const { index, group } of placesOf(name)) {
      const cut = max === null ? undefined : await store.counter.cutoff(index, group, max)
      if (days === null && !cut) continue
      await walk(store, index, { name, group, days, cut }, pruning, (gone) => count(name, gone))
    }
  }
  await forgetEvents(store, pruning, (gone) => count('events', gone))
  if (!pruning.dry_run) await tell(store, forgotten)
  return forgotten
}

async function walk(
  store: Store,
  index: IndexName,
  from: Forgetting,
  pruning: Pruning,
  count: (gone: number) => void,
): Promise<void> {
  for (let ask = from; !pruning.signal?.aborted;) {
    const step = (view: View) => forgetSome(view, ask)
    const reads = [{ index, group: ask.group, after: ask.after, limit: STEP_ROWS }]
    const { gone, next } = await (pruning.dry_run ? store.read(step) : store.write(step, reads))
    count(gone)
    if (!next) return
    ask = { ...ask, after: next }
    await pruning.rest?.()
  }
}

/** Where it began is remembered by the store, so that the chain of the rest can be verified. */
async function forgetEvents(
  store: Store,
  { retention, dry_run, rest, signal }: Pruning,
  count: (gone: number) => void,
): Promise<void> {
  for (let after = 0; !signal?.aborted;) {
    const oldest = await store.events(after, STEP_EVENTS)
    const { position } = await store.head()
    const now_ms = await store.read((view) => Math.min(view.wall, view.now))
    const last = lastToForget(oldest, retention.events, position, now_ms)
    if (!last) return
    if (!dry_run) await store.write((view) => view.forgetEvents(last))
    count(last.position - oldest[0]!.position + 1)
    if (last !== oldest.at(-1)) return
    after = last.position
    await rest?.()
  }
}

/** That somebody's rows are gone is an event. Requests and vectors are nobody's. */
async function tell(store: Store, forgotten: Forgotten): Promise<void> {
  const { events: _, requests: _requests, vectors: _vectors, ...data } = forgotten
  if (Object.keys(data).length === 0) return
  await store.write((view) => {
    view.record('store.pruned', { agent: 'leasehold' }, data)
  })
}
