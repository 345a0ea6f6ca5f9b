import { TABLES } from '../../src/core/schema/schema.ts'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { pruneEvents } from './retention_scene.ts'
import { copyStore } from '../../src/stores/copy/copy.ts'
import { chainFault } from '../../src/stores/writer/chain.ts'
import { FENCES_PER_EPOCH } from '../../src/stores/writer/layer.ts'
import { openStore, type Place } from '../../src/stores/open.ts'
import { ownProcess } from '../../src/machine/process.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { sumHeadAnew } from '../../src/stores/sqlite/sums.ts'
import { callerOf, expectRefusal } from '../support/helpers.ts'
import { PathVerbs } from '../support/path_verbs.ts'
import {
  ada,
  ask,
  bob,
  fill,
  fillQueue,
  type Kind,
  placeFor,
  runSql,
  type Whole,
  wholeOf,
  withVerbs,
} from './copy_scene.ts'

/** Everything but the clock, which a store on another machine has to itself. */
const kept = ({ head: { epoch, fences, task_number, position, hash } }: Whole) => {
  return { epoch, fences, task_number, position, hash }
}

/** All times of `whole`, moved: in rows of these tables nothing else is a number that large. */
function shifted(rows: Whole['rows'], shift_ms: number): Whole['rows'] {
  const text = JSON.stringify(TABLES.map((table) => [table, [...rows[table].values()]]))
  const moved = JSON.parse(text, (name, value: unknown) => {
    const isTime = /^(?:\w+_ms|rank|head_rank)$/.test(name) && Number(value) > 10 ** 12
    return isTime ? (value as number) + shift_ms : value
  }) as [string, Record<string, unknown>[]][]
  const maps = moved.map(([table, list]) => {
    const keyed = list.map((row) => {
      const { scope, rank, task_id } = row
      if (table !== 'ready') return row
      return { ...row, key: `${String(scope)}\n${10 ** 15 + Number(rank)}\n${String(task_id)}` }
    })
    return [table, keyed]
  })
  return Object.fromEntries(maps) as Whole['rows']
}

async function expectSame(from: Place, to: Place, shift_ms: number): Promise<Whole> {
  const [a, b] = [await wholeOf(from), await wholeOf(to)]
  expect(kept(b)).toEqual(kept(a))
  const events = a.events.slice(to.kind === 'file' ? -1_000 : 0)
  expect(b.events).toEqual(events)
  expect(chainFault(b.events, b.checkpoint, b.head)).toBeUndefined()
  // A file store counts nothing.
  const rows = to.kind === 'file' ? { ...a.rows, stat: new Map() } : a.rows
  expect(shifted(b.rows, 0)).toEqual(shifted(rows, shift_ms))
  return b
}

const WAYS: [Kind, Kind][] = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
  ['sqlite', 'file'],
  ['file', 'sqlite'],
  ['file', 'postgres'],
  ['postgres', 'file'],
  ['sqlite', 'sqlite'],
  ['file', 'file'],
  ['postgres', 'postgres'],
]

describe('a store that was copied', () => {
  test.each(WAYS)('from %s to %s has the same rows and events, and life goes on', async (a, b) => {
    const [from, to] = [placeFor(a), placeFor(b)]
    const { claimed, stale, held, reply } = await fill(from)
    const copied = await copyStore(from, to)
    expect(copied).toMatchObject({ from: from.path, to: to.path, rows: { task: 1_203, run: 1 } })
    if (b !== 'postgres' || a === 'postgres') expect(copied.shift_ms).toBe(0)
    const { head } = await expectSame(from, to, copied.shift_ms)

    await withVerbs(to, async (verbs) => {
      await verbs.renew('moved', bob, held.fence)
      await expectRefusal(verbs.renew('moved', ada, stale.fence), 'fence_stale')
      await expectRefusal(verbs.take('moved', callerOf('eve')), 'held')
      await expectRefusal(new PathVerbs(verbs.store).one('**/größe/x', bob), 'held')
      expect(await ask(verbs, 'by request', 'r1')).toEqual(reply)
      const { fence } = await verbs.take('new', ada)
      expect(fence).toBeGreaterThan(head.epoch * FENCES_PER_EPOCH + head.fences)
      await verbs.move(claimed.name.replace('task:', ''), 'done', ada, claimed.fence)
      expect(Number((await verbs.add('next', ada)).id)).toBe(head.task_number + 1)
    })
    const { events, checkpoint, head: later } = await wholeOf(to)
    expect(later.position).toBeGreaterThan(head.position)
    expect(chainFault(events, checkpoint, later)).toBeUndefined()

    const back = placeFor(a)
    const again = await copyStore(to, back)
    await expectSame(to, back, again.shift_ms)
  })

  test.each<[Kind, Kind]>([
    ['sqlite', 'postgres'],
    ['postgres', 'sqlite'],
  ])('from %s to %s has its queue, and goes on dispatching', async (a, b) => {
    const [from, to] = [placeFor(a), placeFor(b)]
    const { running } = await fillQueue(from)
    const { shift_ms, rows } = await copyStore(from, to)
    for (const table of ['share', 'lane', 'parking', 'limit', 'queue', 'dispatcher'] as const) {
      expect(rows[table], table).toBeGreaterThan(0)
    }
    await expectSame(from, to, shift_ms)
    await withVerbs(to, async (verbs) => {
      expect(await verbs.finishRun(running)).toMatchObject({ status: 'completed' })
      expect(await verbs.dispatch('d', ownProcess())).toBeDefined()
    })
  })

  test('keeps its checkpoint where events were pruned', async () => {
    const [from, to, back] = [placeFor('sqlite'), placeFor('postgres'), placeFor('sqlite')]
    await fill(from)
    await pruneEvents(from, 7)
    await copyStore(from, to)
    await copyStore(to, back)
    const [a, b, c] = [await wholeOf(from), await wholeOf(to), await wholeOf(back)]
    expect(a.events).toHaveLength(7)
    expect([b.checkpoint, c.checkpoint]).toEqual([a.checkpoint, a.checkpoint])
    expect([b.events, c.events]).toEqual([a.events, a.events])
  })

  test('goes on above an epoch that its folder remembers', async () => {
    const [from, to] = [placeFor('sqlite'), placeFor('file')]
    const { held } = await fill(from)
    await withVerbs(to, (verbs) => verbs.sweep())
    writeFileSync(join(to.path, 'epoch'), '3')
    expect(await copyStore(from, to)).toMatchObject({ epoch: 3 })
    await withVerbs(to, async (verbs) => {
      await verbs.renew('moved', bob, held.fence)
      expect((await verbs.take('new', ada)).fence).toBe(3 * FENCES_PER_EPOCH + 1)
    })
  })
})

const DAY_MS = 24 * 3600_000

/** Makes the store's clock run ahead by a day, or behind. */
function skew({ path }: Place, ms: number): void {
  const db = openDatabase(path, { readOnly: false })
  db.exec(`UPDATE head SET offset_ms = offset_ms + ${ms}, last_ms = last_ms + ${ms}`)
  sumHeadAnew(db)
  db.close()
}

/** How long the leases in a store still have. */
function leftIn(place: Place): Promise<number> {
  return withVerbs(place, (verbs) =>
    verbs.store.read((view) => view.get('lease', 'skewed')!.expires_ms - view.now),
  )
}

describe('on another clock', () => {
  test.each([DAY_MS, -DAY_MS])('%i ms off, no lease ends earlier than before', async (ms) => {
    const [from, to, back] = [placeFor('sqlite'), placeFor('postgres'), placeFor('sqlite')]
    await withVerbs(from, (verbs) => verbs.sweep().then(() => verbs.take('before', ada)))
    skew(from, ms)
    await withVerbs(from, async (verbs) => {
      await verbs.take('skewed', ada, { ttl_ms: 600_000 })
      await verbs.add('old', ada)
    })
    const began_ms = performance.now()
    const before = await leftIn(from)
    const { shift_ms } = await copyStore(from, to)
    expect(Math.abs(shift_ms + ms)).toBeLessThan(60_000)
    const there = await leftIn(to)
    await copyStore(to, back)
    const home = await leftIn(back)
    const took_ms = performance.now() - began_ms
    for (const left of [there, home]) {
      expect(left).toBeLessThanOrEqual(600_000 + 1_000)
      expect(left).toBeGreaterThanOrEqual(before - took_ms - 1)
    }
    await withVerbs(back, async (verbs) => {
      const { id } = await verbs.add('young', ada)
      expect((await verbs.ready()).at(-1)).toBe(id)
    })
  })

  test('leases of a former boot get the full TTL that the first write would give', async () => {
    const [from, to] = [placeFor('sqlite'), placeFor('postgres')]
    await withVerbs(from, (verbs) => verbs.take('skewed', ada, { ttl_ms: 600_000 }))
    const db = openDatabase(from.path, { readOnly: false })
    db.exec(`UPDATE head SET boot = 'before'; UPDATE lease SET expires_ms = acquired_ms + 1000`)
    db.close()
    await copyStore(from, to)
    expect(await leftIn(to)).toBeGreaterThan(540_000)
  })
})

const SQLITE_TRIGGER = `CREATE TRIGGER spoil AFTER INSERT ON task
  BEGIN UPDATE task SET title = 'spoilt'; END`
const POSTGRES_TRIGGER = `CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql
  AS $$ BEGIN NEW.title := 'spoilt'; RETURN NEW; END $$;
  CREATE TRIGGER spoil BEFORE INSERT ON task FOR EACH ROW EXECUTE FUNCTION spoil()`

describe('a copy is refused', () => {
  test.each<Kind>(['sqlite', 'file', 'postgres'])('to a %s store with anything', async (kind) => {
    const [from, to] = [placeFor('sqlite'), placeFor(kind)]
    await withVerbs(from, (verbs) => verbs.take('a', ada))
    await withVerbs(to, (verbs) => verbs.heartbeat(ada))
    const before = await wholeOf(to)
    await expectRefusal(copyStore(from, to), 'conflict')
    expect(await wholeOf(to)).toEqual(before)
  })

  test.each<Kind>(['sqlite', 'file', 'postgres'])('from a %s store not there', async (kind) => {
    const to = placeFor('sqlite')
    await expectRefusal(copyStore(placeFor(kind), to), 'not_found')
    expect(existsSync(dirname(to.path))).toBe(false)
  })

  test.each<Kind>(['sqlite', 'file', 'postgres'])('from a %s store to itself', async (kind) => {
    const place = placeFor(kind)
    await withVerbs(place, (verbs) => verbs.take('a', ada))
    await expectRefusal(copyStore(place, { ...place }), 'invalid')
  })

  test.each(['leasehold:daemon', 'leasehold:daemon:host:0', 'leasehold:dispatcher:host'])(
    'while %s is held by a living process',
    async (name) => {
      const [from, to] = [placeFor('sqlite'), placeFor('postgres')]
      const process = ownProcess()
      const { fence } = await withVerbs(from, (verbs) => verbs.take(name, ada, { process }))
      const { details } = await expectRefusal(copyStore(from, to), 'held')
      expect(details).toMatchObject({ pid: process.pid })
      await withVerbs(from, (verbs) => verbs.release(name, ada, fence))
      await withVerbs(from, (verbs) =>
        verbs.take(name, ada, { process: { ...process, start: 1 } }).catch(() => undefined),
      )
      expect(await copyStore(from, to)).toMatchObject({ to: to.path })
    },
  )

  test('of a queue, or of too many tasks, to a file store', async () => {
    const [from, many, to] = [placeFor('sqlite'), placeFor('sqlite'), placeFor('file')]
    await withVerbs(from, (verbs) => verbs.enqueue())
    expect((await expectRefusal(copyStore(from, to), 'invalid')).message).toMatch(/queue/)
    await withVerbs(many, async (verbs) => {
      const titles = Array.from({ length: 5_001 }, (_, i) => `t${i}`)
      await Promise.all(titles.map((title) => verbs.add(title, ada)))
    })
    expect((await expectRefusal(copyStore(many, to), 'invalid')).message).toMatch(/5000/)
    expect(readdirSync(to.path).filter((name) => name.startsWith('state'))).toEqual([])
  })

  test('of a row with a field that would be lost', async () => {
    const [from, to] = [placeFor('file'), placeFor('sqlite')]
    const strange = { ...AGENT, theirs: 1 }
    await withVerbs(from, ({ store }) => store.write((view) => view.put('agent', strange)))
    expect((await expectRefusal(copyStore(from, to), 'invalid')).message).toMatch(/theirs/)
  })

  test('of a source whose chain is broken', async () => {
    const [from, to] = [placeFor('sqlite'), placeFor('postgres')]
    await withVerbs(from, (verbs) => verbs.take('a', ada))
    const db = openDatabase(from.path, { readOnly: false })
    db.exec(`UPDATE event SET agent = 'eve'`)
    db.close()
    await expectRefusal(copyStore(from, to), 'damaged')
    expect((await openAndHead(to)).position).toBe(0)
  })

  test('of a text that PostgreSQL cannot keep, to PostgreSQL', async () => {
    const [from, to] = [placeFor('file'), placeFor('postgres')]
    await withVerbs(from, (verbs) => verbs.add('nul', ada, { body: 'a\u0000b' }))
    await expectRefusal(copyStore(from, to), 'invalid')
    expect((await wholeOf(to)).rows.task.size).toBe(0)
  })

  test.each<[Kind, string]>([
    ['sqlite', SQLITE_TRIGGER],
    ['postgres', POSTGRES_TRIGGER],
  ])('by itself where a %s target changes what is written', async (kind, trigger) => {
    const [from, to] = [placeFor('sqlite'), placeFor(kind)]
    await withVerbs(from, (verbs) => verbs.add('one', ada))
    await withVerbs(to, (verbs) => verbs.sweep())
    await runSql(to, trigger)
    expect((await expectRefusal(copyStore(from, to), 'damaged')).message).toMatch(/task/)
    expect((await wholeOf(to)).rows.task.size).toBe(0)
    expect((await openAndHead(to)).position).toBe(0)
  })

  test('of a file store that is written meanwhile', async () => {
    const [from, to] = [placeFor('file'), placeFor('sqlite')]
    await fill(from)
    const late = () => withVerbs(from, ({ store }) => store.write((v) => v.put('agent', AGENT)))
    await expectRefusal(copyStore(from, to, { progress: late }), 'conflict')
    expect((await openAndHead(to)).position).toBe(0)
    expect((await wholeOf(to)).rows.task.size).toBe(0)
  })
})

const AGENT = {
  id: 'late',
  kind: 'agent',
  host: null,
  pid: null,
  first_seen_at: '',
  last_seen_at: '',
  last_seen_ms: 1,
}

async function openAndHead(place: Place) {
  const store = openStore(place)
  return store.head().finally(() => store.close())
}

describe('while a database is copied', () => {
  test.each<Kind>(['sqlite', 'postgres'])('nobody writes a %s source', async (kind) => {
    const [from, to] = [{ ...placeFor(kind), busy_timeout_ms: 30_000 }, placeFor('sqlite')]
    await fill(from)
    const before = await wholeOf(from)
    const writer = openStore(from)
    let written: Promise<unknown> | undefined
    const progress = () => {
      written ??= writer.write((view) => view.put('agent', AGENT))
    }
    await copyStore(from, to, { progress, keep_source: true })
    expect(kept(await wholeOf(to))).toEqual(kept(before))
    expect((await wholeOf(to)).rows.agent.has('late')).toBe(false)
    await written
    await writer.close()
    expect((await wholeOf(from)).rows.agent.has('late')).toBe(true)
  })
})
