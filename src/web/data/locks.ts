import { factsOf, nounOf } from '../../core/event.ts'
import { signal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask, pagesOf } from '../ask.ts'
import { Dirty, Repeated } from './asked.ts'
import { listen, type ShownEvent } from './live.ts'

type ShownLock = AnswerOf<'lock.peek'>['items'][number]
type Waiter = AnswerOf<'lock.waiters'>['items'][number]

/** A held lock, and when it expires, on the server's clock. */
export type HeldLock = ShownLock & { until_ms: number }

/** Locks that the server holds for itself say nothing about anybody's work. */
const OURS = /^leasehold:/
const PAGE = 1_000
const KEPT_MAX = 20_000
const LOOK_MS = 5_000
const WATCH_MS = 1_000

export const locks = new Map<string, HeldLock>()
export const locksChanged = signal(0)
export const waiters = signal<Waiter[]>([])
/** Whether all that is held and waited for has been asked for: until then, none is not "none". */
export const locksKnown = signal(false)

const dirty = new Dirty(async (names) => {
  const { items } = await ask('lock.peek', { names })
  const held = new Set(items.map(({ name }) => name))
  for (const name of names) if (!held.has(name)) locks.delete(name)
  keep(items)
})
const askingWaiters = new Repeated(async () => {
  const { items } = await ask('lock.waiters', { limit: PAGE })
  waiters.value = items
  locksKnown.value ||= isLoaded
})
let isLoaded = false

listen({ events: noteLocks, reset: () => loadLocks() })
setInterval(() => {
  if (!document.hidden && waiters.value.length > 0) askingWaiters.soon()
}, LOOK_MS)

function noteLocks(events: ShownEvent[]): void {
  for (const event of events) {
    const { lock } = event
    if (lock !== null && !OURS.test(lock)) dirty.add(lock)
    const { user } = factsOf(event)
    if (typeof user === 'string') dirty.add(`user:${user}`)
    if (nounOf(event) === 'ticket' || waiters.value.length > 0) askingWaiters.soon()
  }
}

function keep(items: ShownLock[]): void {
  // Not by how long it lasts: an answer may have been on its way for a while.
  for (const lock of items) {
    if (OURS.test(lock.name)) continue
    locks.set(lock.name, { ...lock, until_ms: Date.parse(lock.expires_at) })
  }
  locksChanged.value += 1
}

const asking = new Repeated(async () => {
  let isFirst = true
  for await (const { items } of pagesOf('lock.list', { limit: PAGE })) {
    if (isFirst) locks.clear()
    isFirst = false
    keep(items)
    if (locks.size >= KEPT_MAX) break
  }
  isLoaded = true
  askingWaiters.soon()
})
export const loadLocks = () => asking.soon()

const watched = new Map<string, number>()
/** Renewing leaves no event: what somebody looks at is looked at again as often as it counts. */
setInterval(() => {
  if (!document.hidden) for (const name of watched.keys()) dirty.add(name)
}, WATCH_MS)

/** Called by what shows how long a lock still lasts; answers with how to stop. */
export function watch(name: string): () => void {
  watched.set(name, (watched.get(name) ?? 0) + 1)
  return () => {
    const left = watched.get(name)! - 1
    if (left === 0) watched.delete(name)
    else watched.set(name, left)
  }
}

/** Asks about one lock: it may be one of those that were too many to be kept. */
export const lookAt = (name: string) => dirty.add(name)

export const waitersOf = (name: string) => waiters.value.filter(({ names }) => names.includes(name))
