import { event } from '../../core/schema/event.ts'
import { type AnyRow, KEYS, type TableName, TABLES, SCHEMA } from '../../core/schema/schema.ts'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Event } from '../../core/event.ts'
import type { EventPlace } from '../../core/view.ts'
import { follow, pagesOf } from '../invariants.ts'
import { SideOfCopy, wholeRow } from './side.ts'
import { type Course, courseOf, onCourse } from './time.ts'
import { EVENTS_MAX } from '../file/document.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { leftFor, refuseMoved } from './moved.ts'
import { folderOf, openStore, type Place } from '../open.ts'
import type { Contents, Head } from '../port.ts'
import { addressOf } from '../postgres/address.ts'
import { makePrivateFolder } from '../../machine/privacy.ts'
import { sha256 } from '../../machine/digest.ts'
import * as refuse from './refusals.ts'

type Part = TableName | 'event'

/** Told how many rows of a table are copied, or (`checked`) read back, so far; waited for. */
export type CopyProgress = (
  step: 'copied' | 'checked',
  part: Part,
  rows: number,
) => Promise<void> | void

export interface Copied {
  from: string
  to: string
  /** Rows of each table that has any. */
  rows: Partial<Record<TableName, number>>
  events: number
  position: number
  epoch: number
  /** What was added to all times, because the target has another clock. */
  shift_ms: number
  /** Whether the source refuses to be used from now on; else why not. */
  source: 'closed' | 'kept' | { open: string }
}

export interface CopyOptions {
  progress?: CopyProgress
  /** Leaves the source in use, for a copy to try something on. */
  keep_source?: boolean
}

/**
 * Copies a whole store into an empty one: head, rows, and kept events with their checkpoint.
 * Fences, versions, positions and hashes stay; leases and tickets go on as they are. The target
 * shows all of it or nothing, and only after everything was read back and compared. Then the
 * source is closed: not before, or a crash in between could leave no store to go on with.
 *
 * Refuses `not_found` where there is no source, `held` while a daemon or dispatcher serves it,
 * `conflict` when it is written meanwhile or the target is not empty, `invalid` when both are the
 * same store or a file store cannot keep what is to be copied, and `damaged` when the source is.
 */
export async function copyStore(
  from: Place,
  to: Place,
  { progress = () => undefined, keep_source = false }: CopyOptions = {},
): Promise<Copied> {
  if (isSame(from, to)) throw refuse.sameStore(from.path)
  await refuseMissing(from)
  const source = await SideOfCopy.begin(from)
  try {
    refuseMoved(source.head)
    await refuse.refuseServed(source.contents(), source.now, from.path)
    const target = await openTarget(to)
    try {
      const course = courseOf(source, target)
      const head = raised(course.head, target.head.epoch)
      remember(to, head.epoch)
      const copying = new Copying(source, target, progress)
      const { rows, events } = await copying.run({ ...course, head })
      if (await source.isChanged()) throw refuse.changedMeanwhile(from.path)
      await target.commit(head)
      await confirm(to, head)
      const { epoch, position } = head
      const { shift_ms } = course
      const left = keep_source ? ('kept' as const) : await leave(source, to)
      const [was, is] = [from.path, to.path]
      return { from: was, to: is, rows, events, position, epoch, shift_ms, source: left }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** As one would write it into `LEASEHOLD_STORE`, but for the password. */
export const shownAt = ({ kind, path }: Place) => (kind === 'postgres' ? path : `${kind}:${path}`)

/** The copy is made: a source that cannot be written any more does not undo that. */
async function leave(source: SideOfCopy, to: Place): Promise<Copied['source']> {
  try {
    await source.commit({ ...source.head, boot: leftFor(shownAt(to)) })
    return 'closed'
  } catch (error) {
    return { open: (error as Error).message }
  }
}

/** Seen by somebody who comes in anew. Others may have begun to use it already. */
async function confirm(place: Place, head: Head): Promise<void> {
  const { epoch, position, hash } = head
  const store = openStore(place)
  const found = await store.head().finally(() => store.close())
  const counts = ['fences', 'task_number', 'position', 'last_ms'] as const
  const isThere = found.epoch === epoch && counts.every((name) => found[name] >= head[name])
  const isChanged = found.position === position && found.hash !== hash
  if (!isThere || isChanged) throw refuse.differs(place.path, 'head')
}

function isSame(from: Place, to: Place): boolean {
  if (from.kind !== to.kind) return false
  if (from.url !== undefined && to.url !== undefined) {
    const [one, other] = [addressOf(from.url), addressOf(to.url)].map(({ url, schema }) => {
      const { host, pathname } = new URL(url)
      return `${host}${pathname} ${schema}`
    })
    return one === other
  }
  const [one, other] = [from, to].map(({ path }) => statSync(path, { throwIfNoEntry: false }))
  return (
    from.path === to.path || (one !== undefined && one.ino === other?.ino && one.dev === other.dev)
  )
}

/** What nobody has written takes no room. Looking makes nothing. */
async function refuseMissing(place: Place): Promise<void> {
  const { kind, path } = place
  if (kind !== 'postgres' && !existsSync(path)) throw refuse.missing(path)
  const store = openStore(place)
  const { bytes } = await store.counter.bytes().finally(() => store.close())
  if (bytes === 0) throw refuse.missing(path)
}

/** Makes what is missing: an empty store, which a copy that fails leaves behind. */
async function openTarget(place: Place): Promise<SideOfCopy> {
  const side = await SideOfCopy.begin(place)
  if (await isEmpty(side)) return side
  await side.close()
  throw refuse.notEmpty(place.path)
}

async function isEmpty(side: SideOfCopy): Promise<boolean> {
  const { head } = side
  if (head.fences + head.task_number + head.position > 0) return false
  const contents = side.contents()
  for (const table of TABLES) {
    if ((await contents.rows(table, undefined, 1)).length > 0) return false
  }
  return (await contents.events(0, 1)).length === 0
}

/** Where an epoch above the source's is remembered, fences go on above that. */
function raised(head: Head, epoch: number): Head {
  return epoch > head.epoch ? { ...head, epoch, fences: 0 } : head
}

/** A restore over the copy must get above it, even when it cannot be read any more. */
function remember(place: Place, epoch: number): void {
  const folder = folderOf(place)
  const beside = join(folder, 'store')
  if (epoch === 0 || (existsSync(folder) && readEpoch(beside) >= epoch)) return
  if (!existsSync(folder)) makePrivateFolder(folder)
  writeEpoch(beside, epoch)
}

/** What is done between begin and commit. */
class Copying {
  private readonly source: Contents

  constructor(
    private readonly from: SideOfCopy,
    private readonly to: SideOfCopy,
    private readonly progress: CopyProgress,
  ) {
    this.source = from.contents()
  }

  async run(course: Course): Promise<Pick<Copied, 'rows' | 'events'>> {
    const written = new Map<Part, Tally>()
    for (const table of TABLES) written.set(table, await this.copyRows(table, course))
    const start = await this.startOfEvents(course.head)
    written.set('event', await this.copyEvents(start, course.head))
    await this.compare(written, course.head)
    const counts = TABLES.map((table) => [table, written.get(table)!.rows] as const)
    const rows = Object.fromEntries(counts.filter(([, count]) => count > 0))
    return { rows, events: written.get('event')!.rows }
  }

  private async copyRows(table: TableName, course: Course): Promise<Tally> {
    const tally = new Tally()
    // A file store counts nothing: its whole document is written with every commit.
    if (table === 'stat' && !this.to.isDatabase) return tally
    for await (const page of pagesOf(this.source, table)) {
      const whole = this.from.isDatabase ? page : page.map((row) => wholeRow(table, row))
      const rows = whole.map((row) => onCourse(table, row, course))
      if (!this.to.isDatabase) refuse.refuseInFile(table, rows, tally.rows)
      const keyed = rows.map((row) => [row[KEYS[table] as keyof AnyRow] as string, row] as const)
      await this.to.apply({ changes: { [table]: new Map(keyed) } })
      tally.add(table, rows)
      await this.progress('copied', table, tally.rows)
    }
    return tally
  }

  /** A file store keeps its newest events only. */
  private async startOfEvents({ position }: Head): Promise<EventPlace> {
    const start = await this.source.start()
    const first = position - EVENTS_MAX
    if (this.to.isDatabase || first <= start.position) return start
    const [last] = await this.source.events(first - 1, 1)
    return last ?? start
  }

  private async copyEvents(start: EventPlace, end: EventPlace): Promise<Tally> {
    await this.to.apply({ begins: start })
    const tally = new Tally()
    const fault = await follow(this.source, start, end, async (events) => {
      tally.add('event', events)
      await this.to.apply({ events })
      await this.progress('copied', 'event', tally.rows)
    })
    if (fault !== undefined) throw refuse.brokenChain(this.from.shown, fault)
    return tally
  }

  /** Everything is read back, while it still can be taken back. */
  private async compare(written: Map<Part, Tally>, head: Head): Promise<void> {
    const to = this.to.shown
    const there = this.to.contents()
    for (const table of TABLES) {
      const tally = new Tally()
      for await (const page of pagesOf(there, table)) {
        tally.add(table, page)
        await this.progress('checked', table, tally.rows)
      }
      const fault = written.get(table)!.difference(tally)
      if (fault !== undefined) throw refuse.differs(to, `${table}: ${fault}`)
    }
    const tally = new Tally()
    const fault = await follow(there, await there.start(), head, (events) => {
      tally.add('event', events)
      return this.progress('checked', 'event', tally.rows)
    })
    if (fault !== undefined) throw refuse.differs(to, fault)
    const other = written.get('event')!.difference(tally)
    if (other !== undefined) throw refuse.differs(to, `events: ${other}`)
  }
}

/** How many rows were seen, and a digest over all of their fields, in the order seen. */
class Tally {
  rows = 0
  private digest = ''

  add(table: TableName | 'event', rows: (AnyRow | Event)[]): void {
    const { columns } = table === 'event' ? event : SCHEMA[table]
    const names = Object.keys(columns)
    for (const row of rows) {
      const fields = row as unknown as Record<string, unknown>
      this.digest = sha256(`${this.digest}\n${JSON.stringify(names.map((name) => fields[name]))}`)
    }
    this.rows += rows.length
  }

  /** What is different in the other, if anything. */
  difference(other: Tally): string | undefined {
    if (this.rows !== other.rows) return `${other.rows} rows in place of ${this.rows}`
    return this.digest === other.digest ? undefined : 'the rows differ'
  }
}
