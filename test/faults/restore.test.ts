import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { type Options, PARTICIPANT, sandbox, type Sandbox, TEST_CLI } from '../support/processes.ts'

const STORES = { sqlite: undefined, file: 'file:files' }

describe.for(['sqlite', 'file'] as const)('restoring a %s store', (kind) => {
  function begin(): { place: Sandbox; take: (name: string) => Promise<number> } {
    const place = sandbox()
    place.env['LEASEHOLD_STORE'] = STORES[kind]
    const take = async (name: string) => {
      return (await place.ok(['lock', 'acquire', name, '--agent', 'a'])).fence as number
    }
    return { place, take }
  }

  test('fences rise above all that were ever given, and old leases speak no more', async () => {
    const { place, take } = begin()
    await place.ok(['task', 'add', 'Work', '--id', '1'])
    const claimed = await place.ok(['task', 'claim', '1', '--agent', 'a'])
    const old = await take('x')
    await place.ok(['db', 'backup', place.path('copy')])
    const later = [await take('x'), await take('y'), await take('z')]
    await place.ok(['db', 'restore', place.path('copy'), '--yes'])

    for (const [name, fence] of [
      ['x', old],
      ['task:1', claimed.lease.fence],
    ] as const) {
      const renew = ['--json', 'lock', 'renew', name, '--fence', `${fence}`, '--agent', 'a']
      const { code, error } = await place.cli(renew)
      expect({ code, said: error.code }, name).toEqual({ code: 5, said: 'lease_expired' })
    }
    const stale = ['lock', 'renew', 'x', '--fence', `${later[0]}`, '--agent', 'a']
    await place.refused(stale, 'fence_stale', 5)
    expect(await place.ok(['task', 'show', '1'])).toMatchObject({ status: 'todo', assignee: null })
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
    const next = await take('x')
    expect(next).toBeGreaterThan(Math.max(old, ...later))
    expect(Number.isSafeInteger(next)).toBe(true)
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, epoch: 1 })
  })

  test('the epoch rises with every restore, whatever became of the store', async () => {
    const { place, take } = begin()
    const given = [await take('x')]
    await place.ok(['db', 'backup', place.path('copy')])
    const store = kind === 'sqlite' ? join(place.state, 'leasehold.db') : place.path('files')
    const accidents = [() => undefined, () => spoil(store), () => lose(store), () => undefined]
    for (const [i, accident] of accidents.entries()) {
      accident()
      const { epoch } = await place.ok(['db', 'restore', place.path('copy'), '--yes'])
      expect(epoch).toBe(i + 1)
      given.push(await take('x'))
      expect(given.at(-1)).toBeGreaterThan(given.at(-2)!)
    }
  })

  test('is asked for, and what it replaces is kept beside it', async () => {
    const { place } = begin()
    await place.ok(['task', 'add', 'Before'])
    await place.ok(['db', 'backup', place.path('copy')])
    await place.ok(['task', 'add', 'Behind'])
    const titles = async () =>
      (await place.ok(['task', 'list'])).items.map(({ title }: { title: string }) => title)
    const { next } = await place.refused(['db', 'restore', place.path('copy')], 'invalid', 2)
    expect(next).toContain('--yes')
    expect(await titles()).toEqual(['Before', 'Behind'])
    const first = await place.ok(['db', 'restore', place.path('copy'), '--yes'])
    expect(await titles()).toEqual(['Before'])
    const second = await place.cli(['db', 'restore', first.kept[0], '--yes'])
    expect(second.out).toMatch(/What was there before is kept in .*former/)
    expect(await titles()).toEqual(['Before', 'Behind'])
    const beside = kind === 'sqlite' ? place.state : place.path('files')
    expect(first.kept.map(dirname)).toEqual([beside])
    expect(readdirSync(beside).filter((name) => /former/.test(name))).toHaveLength(2)
  })

  test('ends no lease whose command runs, and forgets none', async () => {
    const { place } = begin()
    await place.ok(['task', 'add', 'First'])
    await place.ok(['db', 'backup', place.path('empty')])
    const command = ['run', '--lock', 'build', '--', 'sh', '-c', 'echo up; cat']
    const running = place.start(command)
    await running.said(/up/)
    const { fence } = await place.ok(['lock', 'status', 'build'])
    const refused = await place.refused(['db', 'restore', place.path('empty'), '--yes'], 'held', 5)
    expect(refused['message']).toMatch(
      /build, held by .*, runs, and the backup knows nothing of it/,
    )
    await place.ok(['db', 'backup', place.path('copy')])
    await place.ok(['db', 'restore', place.path('copy'), '--yes'])
    expect(await place.ok(['lock', 'status', 'build'])).toMatchObject({ is_locked: true, fence })
    await place.refused(['lock', 'acquire', 'build', '--agent', 'b'], 'held', 5)
    running.child.stdin!.end()
    expect(await running.ended).toMatchObject({ code: 0 })
    await place.ok(['lock', 'acquire', 'build', '--agent', 'b'])
  })

  function spoil(store: string): void {
    if (kind === 'sqlite') writeFileSync(store, 'garbage')
    else writeFileSync(join(store, 'state.999999.json'), 'garbage')
  }

  /** The store is gone; only the note of the highest epoch is left beside it. */
  function lose(store: string): void {
    if (kind === 'sqlite')
      for (const side of ['', '-wal', '-shm']) rmSync(store + side, { force: true })
    else writeFileSync(join(store, 'state.9999999.json'), '')
  }
})

describe('db check', () => {
  const TAMPERING: [string, string, RegExp][] = [
    ['a deleted event', 'DELETE FROM event WHERE position = 3', /event 3 is missing/],
    [
      'a changed event',
      `UPDATE event SET agent = 'somebody' WHERE position = 3`,
      /event 3 was changed after it was recorded/,
    ],
    ['a truncated end', 'DELETE FROM event WHERE position > 4', /events 5 to \d+ are missing/],
    [
      'a rewritten end',
      'DELETE FROM event WHERE position > 4; UPDATE head SET position = 4',
      /newest event is not the one/,
    ],
    ['a task that nobody moved', `UPDATE task SET status = 'in_progress'`, /in progress without/],
    ['a task that is lost from the queue', 'DELETE FROM ready', /readiness/],
  ]

  /** Tampers with a store, and has it found; `how` says by which program. */
  async function expectFound(sql: string, says: RegExp, how: Options = {}): Promise<void> {
    const place = sandbox()
    const program = [process.execPath, PARTICIPANT]
    expect(await place.start(['add', '5'], { program, input: 'go' }).ended).toMatchObject({
      code: 0,
    })
    const db = openDatabase(join(place.state, 'leasehold.db'), { readOnly: false })
    db.exec(sql)
    db.close()
    const { message, details } = await place.refused(['db', 'check'], 'damaged', 76, how)
    expect(message).toMatch(says)
    expect(details).toMatchObject({ ok: false })
    // A copy of a broken chain would pass off the loss as sound: restoring it is refused.
    await place.cli(['db', 'backup', place.path('copy')], how)
    const restored = await place.cli(['db', 'restore', place.path('copy'), '--yes'], how)
    expect([3, 76]).toContain(restored.code)
  }

  for (const [what, sql, says] of TAMPERING) {
    test(`finds ${what}`, () => expectFound(sql, says))
  }

  test('a bug planted in S11, which does not follow the chain, is caught', async () => {
    const program = [process.execPath, TEST_CLI]
    const [, sql, says] = TAMPERING[1]!
    const found = expectFound(sql, says, { program, env: { LEASEHOLD_PLANT: 'S11' } })
    await expect(found).rejects.toThrow('db check')
  })
})
