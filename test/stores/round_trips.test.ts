import { expect, test } from 'vitest'
import type { Need } from '../../src/core/view.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'
import { MemoryBackend } from '../support/memory_backend.ts'

/** Far fewer than asks: a step of the sweep, of the asks and of what follows may each take some. */
const LOADS_MAX = 30

/** A store across a network: what is not loaded costs a round trip. */
class Counting extends MemoryBackend {
  loads = 0

  override prefetch(needs: Need[]): Promise<void> {
    this.loads += 1
    return super.prefetch(needs)
  }
}

test('many asks of a batch load rows together, as does what follows from them', async () => {
  const backend = new Counting(temporaryFolder())
  const verbs = new Verbs(new Store(backend, new MachineSim()))
  const names = Array.from({ length: 100 }, (_, i) => `lock-${i}`)
  const leases = await Promise.all(names.map((name) => verbs.take(name, callerOf(name))))
  expect(backend.loads).toBeLessThan(LOADS_MAX)
  backend.loads = 0
  await Promise.all(leases.map(({ name, fence }) => verbs.release(name, callerOf(name), fence)))
  expect(backend.loads).toBeLessThan(LOADS_MAX)
  await verbs.store.close()
})
