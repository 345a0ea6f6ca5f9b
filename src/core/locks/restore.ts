import { endLease } from './lease.ts'
import { dropTicket } from './line.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import type { Lease } from '../rows.ts'
import { expiryOf } from './standing.ts'
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
  const data = { epoch }
  view.record({ type: 'store.restored', agent: 'leasehold', lock: null, task: null, data })
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
    next: 'Wait for its end, or stop it (a task: leasehold queue cancel ID), and then restore.',
    details: { locks: forgotten.slice(0, 20).map(({ name, fence }) => ({ name, fence })) },
  })
}

/**
 * How long the machine was off is not known, so after a new boot every lease that had not expired
 * gets one full TTL. Runs with the first write of the boot; opening a store changes nothing.
 */
export function grantTimeAfterBoot(view: View, last_ms: number): void {
  for (const lease of [...view.scan('leases_by_expiry', '')]) {
    if (lease.expires_ms <= last_ms) continue
    giveFullTtl(view, lease)
  }
}

const giveFullTtl = (view: View, lease: Lease) =>
  view.put('lease', { ...lease, expires_ms: expiryOf(view.now, lease.ttl_ms, lease.terms) })

/** A daemon that was away could not renew for those who ask through it: they get a full TTL too. */
export function grantFullTtl(view: View): void {
  grantTimeAfterBoot(view, view.now)
}
