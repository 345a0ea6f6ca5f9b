import type { Lease } from '../schema/lock.ts'
import { endLease } from './lease.ts'
import { dropTicket } from './line.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import { expiryOf, standing } from './standing.ts'
import type { View } from '../view.ts'

/** Leases under which a command of ours runs, or may run: nobody can tell that it does not. */
const leasesAtWork = (view: View): Lease[] =>
  [...view.scan('leases_by_expiry', '')].filter(
    ({ group }) => group !== null && view.group(group) !== 'dead',
  )

/**
 * After a backup took the place of a store: every lease in it ends, for the lock may have moved on
 * after the backup was made, and the holder in the backup may not be the last. But while the
 * command of a lease runs nobody else can have had the lock: that lease goes on, for a full TTL if
 * it is not renewed. Waiters ask again. Answers the leases that go on.
 */
export function settleAfterRestore(view: View, epoch: number): Lease[] {
  for (const ticket of [...view.scan('tickets', '')]) dropTicket(view, ticket)
  const atWork = leasesAtWork(view)
  const names = new Set(atWork.map(({ name }) => name))
  for (const lease of [...view.scan('leases_by_expiry', '')]) {
    if (names.has(lease.name)) giveFullTtl(view, lease)
    else endLease(view, lease, 'force_released', 'leasehold', 'the store was restored')
  }
  view.record('store.restored', { agent: 'leasehold' }, { epoch })
  return atWork
}

/**
 * Before a backup takes the place of a store, of which it will have the leases `kept`. Refuses with
 * `held` where a command runs under a lease that nobody would know of any more.
 */
export function refuseForgotten(view: View, kept: readonly Lease[]): void {
  const isKept = (lease: Lease) =>
    kept.some(({ name, fence }) => name === lease.name && fence === lease.fence)
  const forgotten = leasesAtWork(view).filter((lease) => !isKept(lease))
  const [first] = forgotten
  if (!first) return
  const more = forgotten.length > 1 ? ` (and ${forgotten.length - 1} more)` : ''
  const what = `The command of ${word(first.name)}, held by ${word(first.holder)}, runs`
  throw new Refusal('held', `${what}, and the backup knows nothing of it${more}`, {
    next: [
      'Wait for its end and restore then.',
      { says: 'To stop a task', operation: 'queue.cancel', input: { id: 'ID' } },
    ],
    details: { locks: forgotten.slice(0, 20).map(({ name, fence }) => ({ name, fence })) },
  })
}

/**
 * How long the machine was off is not known, so after a new boot every lease that had not expired
 * gets one full TTL. Runs with the first write of the boot; opening a store changes nothing.
 */
export function grantTimeAfterBoot(view: View, last_ms: number): void {
  for (const lease of [...view.scan('leases_by_expiry', '')]) {
    if (lease.expires_ms > last_ms) extendAfter(view, lease, 'boot')
  }
}

export interface Returned {
  /** Names the daemon of one host, or of one folder there, whichever process it is. */
  daemon: string
  host: string
  /** Whether the store has daemons of other hosts. */
  isShared: boolean
}

/**
 * A daemon that was away could not renew for those who ask through it: what was granted or renewed
 * while it was last there gets one full TTL, now that its start is certain. What had that already,
 * and was not renewed since, does not get it again: daemons that crash in a row would keep the
 * locks of the dead. Our own roles renew without it.
 */
export function grantTimeAfterAbsence(view: View, { daemon, host, isShared }: Returned): void {
  const before = view.get('agent', daemon)
  const [at, now] = [view.at, view.now]
  const seen = { host, pid: null, last_seen_at: at, last_seen_ms: now }
  view.put('agent', { id: daemon, kind: 'daemon', first_seen_at: at, ...before, ...seen })
  if (!before) return
  for (const lease of [...view.scan('leases_by_expiry', '')]) {
    const isNew = lease.expires_ms - lease.ttl_ms > before.last_seen_ms
    if (!isNew || lease.name.startsWith('leasehold:') || standing(view, lease) !== 'live') continue
    const from = lease.process?.host ?? view.get('agent', lease.holder)?.host
    if (!isShared || from === host) extendAfter(view, lease, 'absence')
  }
}

function extendAfter(view: View, lease: Lease, after: 'boot' | 'absence'): void {
  const { name, fence, holder, ttl_ms } = lease
  giveFullTtl(view, lease)
  const data = { fence, ttl_seconds: ttl_ms / 1000, after }
  view.record('lease.extended', { agent: holder, lock: name }, data)
}

const giveFullTtl = (view: View, lease: Lease) =>
  view.put('lease', { ...lease, expires_ms: expiryOf(view.now, lease.ttl_ms, lease.terms) })
