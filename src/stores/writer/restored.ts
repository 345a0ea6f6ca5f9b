import type { Lease } from '../../core/schema/lock.ts'
import { refuseForgotten, settleAfterRestore } from '../../core/locks/restore.ts'
import { machine } from '../../machine/machine.ts'
import type { Backend, Base, Commit, Head } from '../port.ts'
import { seal } from './chain.ts'
import { instantOf } from './clock.ts'
import { Batch, Layer } from './layer.ts'
import { Store } from './store.ts'

/**
 * Settles a store that a backup took the place of, in a commit of its own; then closes it. Answers
 * the leases that go on.
 */
export async function settleRestored(backend: Backend, epoch: number): Promise<Lease[]> {
  const store = new Store(backend, machine)
  return store.write((view) => settleAfterRestore(view, epoch)).finally(() => store.close())
}

/** Refuses (`held`) to put a backup with the leases `kept` in the place of this store. */
export async function refuseOver(backend: Backend, kept: readonly Lease[]): Promise<void> {
  const store = new Store(backend, machine)
  await store.read((view) => refuseForgotten(view, kept)).finally(() => store.close())
}

/** The same for rows that are at hand. */
export function refuseOverRows(base: Base, head: Head, kept: readonly Lease[]): void {
  const { instant } = instantOf(head, machine)
  refuseForgotten(new Layer(new Batch(base, head, instant, machine)), kept)
}

/** Settles rows that have yet to be published: to a reader their leases were never there. */
export function settledCommit(base: Base, restored: Head, epoch: number) {
  const { instant, head } = instantOf({ ...restored, epoch, fences: 0, boot: '' }, machine)
  const batch = new Batch(base, head, instant, machine)
  const layer = new Layer(batch)
  const kept = settleAfterRestore(layer, epoch)
  batch.adopt(layer)
  const commit: Commit = { changes: batch.changes, ...seal(batch.drafts, batch.head, instant.at) }
  return { commit, kept }
}
