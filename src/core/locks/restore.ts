import { endLease } from './lease.ts'
import { dropTicket } from './line.ts'
import { expiryOf } from './standing.ts'
import type { View } from '../view.ts'

/**
 * After a backup took the place of a store: every lease in it ends. The lock may have moved on
 * after the backup was made, so the holder in the backup may not be the last. Waiters ask again.
 */
export function settleAfterRestore(view: View, epoch: number): void {
  for (const ticket of [...view.scan('tickets', '')]) dropTicket(view, ticket)
  for (const lease of [...view.scan('leases_by_expiry', '')]) {
    endLease(view, lease, 'force_released', 'leasehold', 'the store was restored')
  }
  const data = { epoch }
  view.record({ type: 'store.restored', agent: 'leasehold', lock: null, task: null, data })
}

/**
 * How long the machine was off is not known, so after a new boot every lease that had not expired
 * gets one full TTL. Runs with the first write of the boot; opening a store changes nothing.
 */
export function grantTimeAfterBoot(view: View, last_ms: number): void {
  for (const lease of [...view.scan('leases_by_expiry', '')]) {
    if (lease.expires_ms <= last_ms) continue
    view.put('lease', { ...lease, expires_ms: expiryOf(view.now, lease.ttl_ms, lease.terms) })
  }
}

/** A daemon that was away could not renew for those who ask through it: they get a full TTL too. */
export function grantFullTtl(view: View): void {
  grantTimeAfterBoot(view, view.now)
}
