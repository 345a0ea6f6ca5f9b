import { endLease } from './lease.ts'
import { dropTicket } from './line.ts'
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
