import type { Lease } from '../rows.ts'
import { endLease } from './lease.ts'
import { dropTicket } from './line.ts'
import { expiryOf, standing } from './standing.ts'
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
  view.put('lease', { ...lease, expires_ms: expiryOf(view.now, ttl_ms, lease.terms) })
  const data = { fence, ttl_seconds: ttl_ms / 1000, after }
  view.record({ type: 'lease.extended', agent: holder, lock: name, task: null, data })
}
