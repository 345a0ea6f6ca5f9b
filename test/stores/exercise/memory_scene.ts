import { afterEach, expect } from 'vitest'
import type { Store } from '../../../src/stores/writer/store.ts'
import { memoryFaults } from '../../support/memory_check.ts'
import { MemoryVerbs } from '../../support/memory_verbs.ts'
import { lookInto } from '../../simulation/queue_look.ts'
import type { Begin } from './scene.ts'

/** Scenes with shared memory, whose rows must agree with each other when a test is over. */
export function memoryScenes(begin: Begin) {
  const begun: Store[] = []
  // Registered later than the hook that closes stores, so it runs before that.
  afterEach(async () => {
    for (const store of begun.splice(0)) {
      expect(await store.read((view) => memoryFaults(lookInto(view)))).toEqual([])
    }
  })
  return () => {
    const scene = begin()
    begun.push(scene.store)
    return { ...scene, memory: new MemoryVerbs(scene.store) }
  }
}
