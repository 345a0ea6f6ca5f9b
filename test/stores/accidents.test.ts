import { describe, expect, test } from 'vitest'
import type { Backend } from '../../src/stores/port.ts'
import { Store } from '../../src/stores/writer/store.ts'
import {
  callerOf,
  expectRefusal,
  FaultyBackend,
  fileBackend,
  MachineSim,
  MemoryBackend,
  sqliteBackend,
  temporaryFolder,
  Verbs,
} from '../support/helpers.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

const BACKENDS: [string, (dir: string) => Backend][] = [
  ['memory', (place) => new MemoryBackend(place)],
  ['SQLite', sqliteBackend],
  ['file', fileBackend],
]

/** Commits that go wrong: what the writer tells whom, and what is true afterwards. */
describe.each(BACKENDS)('on the %s store', (_name, open) => {
  function begin() {
    const backend = new FaultyBackend(open(temporaryFolder()))
    const machine = new MachineSim()
    return { backend, machine, verbs: new Verbs(new Store(backend, machine)) }
  }

  test('a lost reply is answered as unknown, never as no, and what was written stays', async () => {
    const { verbs, backend } = begin()
    backend.faults.push('lost_reply')
    const asked = [verbs.take('a', ada), verbs.take('b', bob)]
    for (const each of asked) {
      const told = await expectRefusal(each, 'unavailable')
      expect(told.next).toContain('same request id')
    }
    expect(await verbs.lease('a')).toMatchObject({ holder: 'ada', ended_at: null })
    await expectRefusal(verbs.take('b', ada), 'held')
    await verbs.store.close()
  })

  test('a commit that failed is tried again ask by ask, so that one cannot spoil all', async () => {
    const { verbs, backend } = begin()
    backend.faults.push('fail')
    const asked = ['a', 'b', 'c'].map((name) => verbs.take(name, ada))
    const leases = await Promise.all(asked)
    expect(leases.map((lease) => lease.fence)).toEqual([1, 2, 3])
    expect(await verbs.eventTypes()).toHaveLength(3)
    await verbs.store.close()
  })

  test('an ask that cannot be written says so, and the next one works', async () => {
    const { verbs, backend } = begin()
    backend.faults.push('fail')
    await expect(verbs.take('a', ada)).rejects.toThrow('nothing was written')
    expect(await verbs.lease('a')).toBeUndefined()
    expect(await verbs.take('a', bob)).toMatchObject({ fence: 1, holder: 'bob' })
    await verbs.store.close()
  })

  test('a batch that came second is decided anew on what came first', async () => {
    const { verbs, backend } = begin()
    backend.faults.push('again', 'again')
    let decided = 0
    const counted = verbs.store.write(() => {
      decided += 1
    })
    const lease = await verbs.take('a', ada)
    await counted
    expect(decided).toBe(3)
    expect(lease.fence).toBe(1)
    expect(await verbs.eventTypes()).toEqual(['lease.granted'])
    await verbs.store.close()
  })

  test('a look at the processes that was not committed is made again', async () => {
    const { verbs, backend, machine } = begin()
    const process = machine.spawn()
    await verbs.take('a', callerOf('ada', { process }))
    machine.kill(process)
    machine.advance(1_000)
    backend.faults.push('fail')
    await expect(verbs.take('b', bob)).rejects.toThrow('nothing was written')
    await verbs.take('b', bob)
    expect(await verbs.eventTypes()).toContain('lease.died')
    await verbs.store.close()
  })
})
