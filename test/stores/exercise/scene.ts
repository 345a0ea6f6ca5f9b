import type { Store } from '../../../src/stores/writer/store.ts'
import type { MachineSim, Verbs } from '../../support/helpers.ts'

/** Where a test of a store begins: an empty place, and a machine that stands still. */
export interface Scene {
  machine: MachineSim
  store: Store
  verbs: Verbs
  /** Another writer on the same place, as another process would open it. */
  beside: () => Verbs
}

export type Begin = () => Scene
