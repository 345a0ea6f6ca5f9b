import { describe, expect, test } from 'vitest'
import { checkStore } from '../../src/stores/care.ts'
import { copyStore } from '../../src/stores/copy/copy.ts'
import { openStore, type Place } from '../../src/stores/open.ts'
import { expectRefusal } from '../support/helpers.ts'
import { MemoryVerbs } from '../support/memory_verbs.ts'
import { ada, bob, type Kind, placeFor, runSql, wholeOf } from '../stores/copy_scene.ts'

async function withMemory<T>(place: Place, use: (memory: MemoryVerbs) => Promise<T>): Promise<T> {
  const store = openStore(place)
  return use(new MemoryVerbs(store)).finally(() => store.close())
}

/** A note with a history, one in conflict, one deleted, one with a time to live. */
function fill(place: Place): Promise<void> {
  return withMemory(place, async (memory) => {
    await memory.settings({ strategies: { 'project:*': 'text' } })
    await memory.put('plain', 'one', ada, { tags: ['ü€𝄞'], confidence: 0.5 })
    await memory.put('plain', 'two', bob, { based_on: 1 })
    await memory.put('disputed', 'ä"\\{}\n', ada)
    await memory.put('disputed', 'b', bob)
    await memory.put('settled', 'a', ada)
    const { conflict } = await memory.put('settled', 'b', bob)
    await memory.resolve(conflict!.id, { choose: 'ours' }, bob)
    await memory.put('deleted', 'x', ada)
    await memory.delete('deleted', ada)
    await memory.put('passing', 'x', ada, { ttl_ms: 3_600_000 })
  })
}

const DATABASES: Kind[] = ['sqlite', 'postgres']

describe.each(DATABASES)('shared memory on %s', (kind) => {
  test('is found sound by db check, and unsound when its rows disagree', async () => {
    const place = placeFor(kind)
    await fill(place)
    expect(await problemsOf(place)).toEqual([])
    const damages: [string, RegExp][] = [
      [`UPDATE memory SET heads = '[1]' WHERE key = 'plain'`, /present is not.*global plain/],
      [`DELETE FROM memory_version WHERE version = 2 AND memory_id LIKE '%settled'`, /present/],
      [`DELETE FROM memory_text WHERE id LIKE '%plain%'`, /text is missing: .*global plain 1/],
      [`DELETE FROM memory_conflict WHERE key = 'disputed'`, /in no conflict: global disputed/],
    ]
    for (const [damage, said] of damages) {
      await runSql(place, damage)
      expect((await problemsOf(place)).join('; ')).toMatch(said)
    }
  })

  test('is copied whole to the other kind and back, but not into a file', async () => {
    const [from, to, back] = [placeFor(kind), placeFor(other(kind)), placeFor(kind)]
    await fill(from)
    const copied = await copyStore(from, to, { keep_source: true })
    expect(copied.rows).toMatchObject({ memory: 5, memory_text: 9, memory_conflict: 2 })
    await copyStore(to, back, { keep_source: true })
    const texts = async (place: Place) => (await wholeOf(place)).rows.memory_text
    expect(await texts(back)).toEqual(await texts(from))
    await withMemory(to, async (memory) => {
      expect(await memory.texts('disputed')).toEqual(['ä"\\{}\n', 'b'])
      expect(await memory.texts('passing')).toEqual(['x'])
      const { conflict } = await memory.put('plain', 'late', ada, { based_on: 1 })
      expect(conflict).toMatchObject({ ours: 2, theirs: 3, base: 1 })
    })
    expect(await problemsOf(to)).toEqual([])
    const no = await expectRefusal(copyStore(from, placeFor('file')), 'invalid')
    expect(no.message).toContain('shared memory')
  })
})

/** The server of the tests does without fsync, which is no fault of the rows. */
async function problemsOf(place: Place): Promise<string[]> {
  return (await checkStore(place)).problems.filter((each) => !each.includes('fsync'))
}

const other = (kind: Kind): Kind => (kind === 'sqlite' ? 'postgres' : 'sqlite')
