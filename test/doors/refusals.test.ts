import { expect, test, vi } from 'vitest'
import { Refusal, REFUSALS } from '../../src/core/refusal.ts'
import { noteRefusal } from '../../src/doors/note_refusal.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { operations } from '../../src/operations/registry.ts'

test('exit codes and HTTP status are those of the contract', () => {
  const table = Object.entries(REFUSALS).map(([code, { exit, http }]) => `${code} ${exit}/${http}`)
  expect(table).toEqual([
    'invalid 2/400',
    'unauthorized 4/401',
    'forbidden 4/403',
    'not_found 3/404',
    'held 5/409',
    'deadlock 5/409',
    'conflict 5/409',
    'fence_stale 5/412',
    'lease_expired 5/412',
    'illegal_move 5/409',
    'too_large 2/413',
    'rate_limited 75/429',
    'unavailable 75/503',
    'damaged 76/503',
    'internal 1/500',
  ])
})

test('every operation that changes something takes a request id, and has a name of its own', () => {
  const names = operations.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const { name, effect, input } of operations) {
    expect('request_id' in input, name).toBe(effect === 'write')
  }
})

test('a refusal reads itself back from what a server answered', () => {
  const refusal = new Refusal('held', 'x is held by ada', { next: 'Wait.', details: { pid: 7 } })
  const wire: unknown = JSON.parse(JSON.stringify(refusal))
  const read = Refusal.from(wire, 409)
  expect(read.toJSON()).toEqual(wire)
  expect(read.message).toBe('x is held by ada')
  // Of a newer server, and of something that is none of ours.
  const newer = { error: { code: 'tomorrow', message: 'No.', next: '', details: {} } }
  expect(Refusal.from(newer, 418)).toMatchObject({ code: 'internal', message: 'No.' })
  for (const reply of [null, {}, 'no']) {
    expect(Refusal.from(reply, 502)).toMatchObject({
      code: 'unavailable',
      message: 'The server answered 502',
    })
  }
})

test('are told in the log so many times a minute, and no event is made', () => {
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const turnAway = vi.fn<(code: string) => void>()
  // It has nothing else: no event could be recorded.
  const store = { meter: { turnAway } } as unknown as Store
  const refusal = new Refusal('forbidden', 'not for\nyou', { next: 'Ask.' })
  for (let i = 0; i < 100; i += 1) noteRefusal(store, refusal, 'lock.acquire', 'eve')
  noteRefusal(store, refusal, 'lock.acquire', undefined)
  const lines = said.mock.calls.map(([line]) => String(line))
  said.mockRestore()
  expect(turnAway).toHaveBeenCalledTimes(101)
  expect(lines).toHaveLength(60)
  expect(lines[0]).toBe('leasehold: refused lock.acquire to eve: "not for you"\n')
  expect(lines[59]).toContain('more of this minute are only counted')
})
