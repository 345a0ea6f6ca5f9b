import { settleAfterRestore } from '../../core/locks/restore.ts'
import { machine } from '../../machine/machine.ts'
import type { Backend, Base, Commit, Head } from '../port.ts'
import { seal } from './chain.ts'
import { instantOf } from './clock.ts'
import { Batch, Layer } from './layer.ts'
import { Store } from './store.ts'

/** Settles a store that a backup took the place of, in a commit of its own; then closes it. */
export async function settleRestored(backend: Backend, epoch: number): Promise<void> {
  const store = new Store(backend, machine)
  await store.write((view) => settleAfterRestore(view, epoch)).finally(() => store.close())
}

/** The same for rows that have yet to be published: to a reader their leases were never there. */
export function settledCommit(base: Base, restored: Head, epoch: number): Commit {
  const { instant, head } = instantOf({ ...restored, epoch, fences: 0, boot: '' }, machine)
  const batch = new Batch(base, head, instant, machine)
  const layer = new Layer(batch)
  settleAfterRestore(layer, epoch)
  batch.adopt(layer)
  return { changes: batch.changes, ...seal(batch.drafts, batch.head, instant.at) }
}
