import { describe, expect, test } from 'vitest'
import { type Event, type EventFacts, type EventType } from '../../src/core/event.ts'
import { History } from './history.ts'

const event = (type: EventType, agent: string, data: EventFacts): Event => {
  return { position: 1, at: '', type, agent, lock: 'a', task: null, data, hash: '' } as Event
}

/** What those who watch believe of a lock whose holder renewed it, and may have done so again. */
function handedOn(): History {
  const history = new History()
  history.follow([event('lease.granted', 'ada', { fence: 1, ttl_seconds: 30 })], 0)
  history.renewed('a', 10_000, 1_000, true)
  history.renewed('a', 30_000, 1_000, false)
  history.follow([event('lease.handed_off', 'ada', { from_fence: 1, to: 'bob', fence: 2 })], 2_000)
  return history
}

const expired = event('lease.expired', 'bob', { fence: 2 })

/** Found by seed 5086: a heartbeat without an answer was taken for one that had lengthened it. */
describe('a lease that may have been renewed for longer, and was handed on', () => {
  test('may end after the shorter time', () => {
    expect(() => handedOn().follow([expired], 12_000)).not.toThrow()
  })

  test('may not end before that', () => {
    expect(() => handedOn().follow([expired], 11_999)).toThrow('a expired 1 ms early')
  })

  test('may be written under until the longer time, and not after it', () => {
    const write = { lock: 'a', fence: 2, agent: 'bob', what: 'renew' }
    const judged = (uptime_ms: number) => {
      const history = handedOn()
      history.beginStep()
      history.accepted(write, uptime_ms)
    }
    expect(() => judged(31_999)).not.toThrow()
    expect(() => judged(32_000)).toThrow('its lease 2 was over')
  })
})
