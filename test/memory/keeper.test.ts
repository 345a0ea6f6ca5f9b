import { describe, expect, test } from 'vitest'
import { pruneEvents } from '../stores/retention_scene.ts'
import { copyStore } from '../../src/stores/copy/copy.ts'
import { sha256 } from '../../src/machine/digest.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { expectRefusal } from '../support/helpers.ts'
import { Endpoint } from './endpoint.ts'
import { Notes, STORES } from './scene.ts'

async function begin(kind: (typeof STORES)[number], more: object = {}) {
  const endpoint = await Endpoint.start()
  const notes = new Notes(kind)
  notes.configure(endpoint.config(more))
  return { endpoint, notes }
}

const vectorsIn = (store: Store, ids: string[], provider: string) =>
  store.finder!.vectorsOf(
    provider,
    ids.map((id) => `global\n${id}`),
  )

describe.each(STORES)('behind notes on %s', (kind) => {
  test('each content is embedded once, whether it was put before or after the start', async () => {
    const { endpoint, notes } = await begin(kind)
    await notes.put('a', 'one text')
    await notes.put('b', 'one text')
    await notes.keeper()
    await notes.put('c', 'another text')
    await notes.put('c', 'another text')
    const status = await notes.settled()
    expect(status).toMatchObject({ notes: 3, embedded: 3, put_aside: 0, dimensions: 64 })
    const texts = endpoint.texts.filter((text) => !text.startsWith('How long'))
    expect(texts.toSorted()).toEqual(['another text', 'one text'])
    const rows = await vectorsIn(notes.store, ['a', 'b', 'c'], status.provider)
    expect(rows.filter(({ bytes }) => bytes?.length === 68)).toHaveLength(3)
    const found = await notes.ask('memory.search', { query: 'another text', mode: 'meaning' })
    expect(found).toMatchObject({ modes: ['meaning'], items: [{ key: 'c' }, {}, {}] })
  })

  test('a pair that is alike is reported once, and goes when it grows apart', async () => {
    const { notes } = await begin(kind)
    await notes.keeper()
    await notes.put('a', 'the web build needs a clean cache')
    await notes.put('b', 'the web build needs a clean cache now')
    await notes.put('far', 'the web build needs a clean cache', { scope: 'project:x' })
    await notes.put('c', 'nothing of the kind')
    await notes.settled()
    const pairs = () => notes.ask('duplicate.list', {})
    const keysOf = ({ a, b }: { a: { key: string }; b: { key: string } }) => `${a.key} ${b.key}`
    const found = (await pairs()).items
    expect(found.map(keysOf).toSorted()).toEqual(['a b', 'a far', 'b far'])
    const ab = found.find((each: never) => keysOf(each) === 'a b')
    expect(ab.similarity).toBeGreaterThan(0.85)

    // Said again, and looked at again, it is still the same pair.
    await notes.put('a', 'the web build needs a clean cache', { tags: ['again'], based_on: 1 })
    await notes.put('c', 'nothing of this kind', { based_on: 1 })
    await notes.settled()
    expect((await pairs()).items).toHaveLength(3)

    await notes.ask('duplicate.resolve', { id: ab.id, action: 'keep_both' })
    await expectRefusal(
      notes.ask('duplicate.resolve', { id: ab.id, action: 'delete_a' }),
      'conflict',
    )
    await notes.put('far', 'quite another thing', { scope: 'project:x', based_on: 1 })
    await notes.settled()
    expect((await pairs()).items).toEqual([])
    expect((await notes.ask('duplicate.list', { status: 'resolved' })).items).toHaveLength(1)
    const events = await notes.store.events(0, 1_000)
    expect(events.filter(({ type }) => type === 'duplicate.found')).toHaveLength(3)
  })

  test('one works at a time; another takes over when it stops', async () => {
    const { endpoint, notes } = await begin(kind)
    const first = await notes.keeper()
    const other = notes.beside()
    await notes.keeper(undefined, other)
    await notes.put('a', 'first text')
    await notes.settled()
    expect(endpoint.texts.filter((text) => text === 'first text')).toHaveLength(1)
    await first.stop()
    await notes.put('b', 'second text')
    await notes.settled()
    const found = await notes.ask('memory.search', { query: 'second', mode: 'meaning' }, 'x', other)
    expect(found.items[0].key).toBe('b')
  })
})

/** The rest is the same rules over the same rows: a short run looks at one store. */
const SOME = process.env['FAULTS'] === 'long' ? STORES : (['sqlite'] as const)

describe.each(SOME)('more behind notes on %s', (kind) => {
  test('what changes is found by what it says now, what goes is found no more', async () => {
    const { notes } = await begin(kind)
    await notes.keeper()
    await notes.put('a', 'red green blue')
    await notes.put('b', 'north south east')
    await notes.settled()
    const near = (query: string) => notes.find(query, { mode: 'meaning', limit: 1 })
    expect(await near('green blue')).toEqual(['a'])
    await notes.put('a', 'salt and pepper', { based_on: 1 })
    await notes.settled()
    expect(await near('pepper salt')).toEqual(['a'])
    await notes.ask('memory.delete', { key: 'a' })
    expect(await near('pepper salt')).not.toEqual(['a'])
  })

  test('a pair is settled by deleting one, or by a text that is made of both', async () => {
    const { notes } = await begin(kind)
    await notes.keeper()
    await notes.put('a', 'use port 5433 for the database')
    await notes.put('b', 'use port 5433 for the local database')
    await notes.settled()
    const [{ id }] = (await notes.ask('duplicate.list', {})).items
    const merge = { id, action: 'merge' }
    await expectRefusal(notes.ask('duplicate.resolve', merge), 'invalid')
    await notes.ask('duplicate.resolve', { ...merge, content: 'local database: port 5433' })
    expect(await notes.ask('memory.get', { key: 'a' })).toMatchObject({ version: 2 })
    await expectRefusal(notes.ask('memory.get', { key: 'b' }), 'not_found')
    await expectRefusal(notes.ask('duplicate.resolve', { ...merge, id: 'none' }), 'not_found')
  })

  test('what cannot be embedded is put aside with its error, apart from the rest', async () => {
    const { endpoint, notes } = await begin(kind)
    endpoint.fails = (text) => text.includes('poison')
    await notes.put('bad', 'poison')
    await notes.put('good', 'fine')
    await notes.keeper()
    await notes.settled(({ embedded }) => embedded === 1)
    expect(await notes.find('fine', { mode: 'meaning' })).toEqual(['good'])
    // Its pauses are long: here time is made to pass.
    for (let attempt = 1; attempt < 5; attempt += 1) {
      await notes.settled(() => true)
      await notes.store.write((view) => {
        const waiting = view.get('note_attempt', 'global\nbad')
        if (waiting?.state === 'waiting') view.put('note_attempt', { ...waiting, next_ms: 0 })
        view.record('memory.retried', { agent: '' }, { tried: 0 })
      })
      await until(notes, (job) => job?.state === 'dead' || (job?.attempts ?? 0) > attempt)
    }
    const status = await notes.settled(({ put_aside }) => put_aside === 1)
    expect(status.problems).toMatchObject([
      { kind: 'embed', subject: 'global bad', attempts: 5, error: /cannot read this/ },
    ])
    endpoint.fails = () => false
    expect(await notes.ask('memory.retry', {})).toEqual({ retried: 1 })
    await notes.settled(({ put_aside, waiting }) => put_aside + waiting === 0)
    expect(await notes.find('poison', { mode: 'meaning', limit: 1 })).toEqual(['bad'])
  })

  test('a copy finds the same, and what nobody says any more is forgotten', async () => {
    const { notes } = await begin(kind)
    await notes.put('a', 'red green')
    await notes.put('b', 'salt pepper')
    const keeper = await notes.keeper()
    const { provider } = await notes.settled()
    await keeper.stop()
    await notes.ask('memory.delete', { key: 'b' })
    await notes.ask('memory.prune', { dry_run: false })
    const vectors = () =>
      notes.store.read((view) => {
        const hashOf = (text: string) => `${provider}\n${sha256(text)}`
        return ['red green', 'salt pepper'].map((text) => !!view.get('vector', hashOf(text)))
      })
    expect(await vectors()).toEqual([true, true])
    await pruneEvents(notes.place, 1_000)
    expect(await vectors()).toEqual([true, false])

    const copy = new Notes('sqlite')
    await copyStore(notes.place, copy.place)
    expect(await copy.find('green')).toEqual(['a'])
    expect(await copy.find('pepper')).toEqual([])
    const [row] = await vectorsIn(copy.store, ['a'], provider)
    const [before] = await vectorsIn(notes.store, ['a'], provider)
    expect(Buffer.from(row!.bytes!)).toEqual(Buffer.from(before!.bytes!))
  })

  test('another provider embeds all again, one by one, and only its vectors count', async () => {
    const { notes } = await begin(kind)
    await notes.put('a', 'red green')
    await notes.put('b', 'salt pepper')
    const first = await notes.keeper()
    const before = await notes.settled()
    await first.stop()
    const other = await Endpoint.start()
    notes.configure(other.config({ model: 'other' }))
    await notes.keeper()
    const after = await notes.settled(({ provider, waiting }) => {
      return provider !== before.provider && waiting === 0
    })
    expect(after).toMatchObject({ notes: 2, embedded: 2 })
    expect(other.texts.toSorted()).toEqual(['How long is a vector?', 'red green', 'salt pepper'])
    expect(await notes.find('pepper', { mode: 'meaning', limit: 1 })).toEqual(['b'])
  })

  test('pairs are kept while another provider embeds both again', async () => {
    const { notes } = await begin(kind)
    await notes.put('a', 'the web build needs a clean cache')
    await notes.put('b', 'the web build needs a clean cache now')
    const first = await notes.keeper()
    await notes.settled()
    await first.stop()
    const other = await Endpoint.start()
    notes.configure(other.config({ model: 'other' }))
    await notes.keeper()
    await notes.settled(({ provider, waiting }) => provider.includes('other') && waiting === 0)
    expect((await notes.ask('duplicate.list', {})).items).toHaveLength(1)
    const events = await notes.store.events(0, 1_000)
    expect(events.filter(({ type }) => type === 'duplicate.found')).toHaveLength(1)
    await notes.ask('memory.prune', { older_than_seconds: 0, dry_run: false })
    expect((await notes.ask('duplicate.list', {})).items).toEqual([])
  })
})

async function until(
  notes: Notes,
  isSo: (job: { state: string; attempts: number } | undefined) => boolean,
): Promise<void> {
  const look = () => notes.store.read((view) => view.get('note_attempt', 'global\nbad'))
  await notes.settled(() => true)
  await expect.poll(async () => isSo(await look())).toBe(true)
}
