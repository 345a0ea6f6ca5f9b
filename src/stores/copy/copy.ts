import { event } from '../../core/schema/event.ts'
import {
  type AnyRow,
  KEYS,
  type TableName,
  TABLES,
  IS_APART,
  SCHEMA,
} from '../../core/schema/schema.ts'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Event } from '../../core/event.ts'
import { chainFault } from '../writer/chain.ts'
import { FILE_EVENTS, FileSide } from './file.ts'
import { PostgresSide } from './postgres.ts'
import type { Mark, Side } from './side.ts'
import { SqliteSide } from './sqlite.ts'
import { type Course, courseOf, onCourse } from './time.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { leftFor, refuseMoved } from './moved.ts'
import { folderOf, openStore, type Place } from '../open.ts'
import type { Head } from '../port.ts'
import { addressOf } from '../postgres/address.ts'
import { makePrivateFolder } from '../../machine/privacy.ts'
import { sha256 } from '../../machine/digest.ts'
import * as refuse from './refusals.ts'

/** Rows and events that are in memory at a time. */
const CHUNK = 500
/** Of long texts, fewer: each may be a megabyte. */
const TEXTS_PER_CHUNK = 16

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
  const source = await openSource(from)
  try {
    await refuse.refuseServed(source, from.path)
    const stamp = await source.stamp()
    const target = await openTarget(to)
    try {
      const course = await courseOf(source, target)
      const head = raised(course.head, (await target.head()).epoch)
      remember(to, head.epoch)
      const copying = new Copying(source, target, from.path, to.path, progress)
      const { rows, events } = await copying.run({ ...course, head })
      if ((await source.stamp()) !== stamp) throw refuse.changedMeanwhile(from.path)
      await target.commit()
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
async function leave(source: Side, to: Place): Promise<Copied['source']> {
  try {
    await source.leave(leftFor(shownAt(to)))
    return 'closed'
  } catch (error) {
    return { open: (error as Error).message }
  }
}

/** Seen by somebody who comes in anew. Others may have begun to use it already. */
async function confirm(place: Place, { epoch, fences, position, hash }: Head): Promise<void> {
  const store = openStore(place)
  const found = await store.head().finally(() => store.close())
  const isThere = found.epoch === epoch && found.fences >= fences && found.position >= position
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

/** Opening it as a store brings an older one up to date, and refuses a folder that is not safe. */
async function openSource(place: Place): Promise<Side> {
  const { kind, path } = place
  if (kind !== 'postgres' && !existsSync(path)) throw refuse.missing(path)
  const store = openStore(place)
  refuseMoved(await store.head().finally(() => store.close()))
  const side = await openSide(place)
  if (!side || (side instanceof FileSide && !side.isPublished)) throw refuse.missing(path)
  return side
}

/** Undefined where there is no store. */
async function openSide(place: Place): Promise<Side | undefined> {
  const { kind, path, url, busy_timeout_ms } = place
  if (kind === 'sqlite') return SqliteSide.open(path, busy_timeout_ms)
  return kind === 'file' ? FileSide.open(path) : PostgresSide.open(url!, busy_timeout_ms)
}

/** Makes what is missing: an empty store, which a copy that fails leaves behind. */
async function openTarget(place: Place): Promise<Side> {
  const { path } = place
  const store = openStore(place)
  try {
    // Looked at before anything is done to it: a write would also sweep.
    if (!isFresh(await store.head())) throw refuse.notEmpty(path)
    await store.write(() => undefined)
  } finally {
    await store.close()
  }
  const side = await openSide(place)
  if (!side) throw refuse.missing(path)
  if (await isEmpty(side)) return side
  await side.close()
  throw refuse.notEmpty(path)
}

const isFresh = ({ fences, task_number, position }: Head) => fences + task_number + position === 0

async function isEmpty(side: Side): Promise<boolean> {
  if (!isFresh(await side.head())) return false
  for (const table of TABLES) {
    if ((await side.rows(table, undefined, 1)).length > 0) return false
  }
  return (await side.events(0, 1)).length === 0
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
  private readonly shown: { from: string; to: string }

  constructor(
    private readonly from: Side,
    private readonly to: Side,
    fromShown: string,
    toShown: string,
    private readonly progress: CopyProgress,
  ) {
    this.shown = { from: fromShown, to: toShown }
  }

  async run(course: Course): Promise<Pick<Copied, 'rows' | 'events'>> {
    const written = new Map<Part, Tally>()
    for (const table of TABLES) written.set(table, await this.copyRows(table, course))
    const start = await this.startOfEvents(course.head)
    written.set('event', await this.copyEvents(start, course.head))
    await this.to.finish(course.head, start)
    await this.compare(written, course.head)
    const counts = TABLES.map((table) => [table, written.get(table)!.rows] as const)
    const rows = Object.fromEntries(counts.filter(([, count]) => count > 0))
    return { rows, events: written.get('event')!.rows }
  }

  private async copyRows(table: TableName, course: Course): Promise<Tally> {
    const tally = new Tally()
    // A file store counts nothing: its whole document is written with every commit.
    if (table === 'stat' && this.to.isFile) return tally
    for await (const page of pagesOf(this.from, table)) {
      const rows = page.map((row) => onCourse(table, row, course))
      await this.to.write(table, rows)
      tally.add(table, rows)
      await this.progress('copied', table, tally.rows)
    }
    return tally
  }

  /** A file store keeps its newest events only. */
  private async startOfEvents({ position }: Head): Promise<Mark> {
    const start = await this.from.checkpoint()
    const first = position - FILE_EVENTS
    if (!this.to.isFile || first <= start.position) return start
    const [last] = await this.from.events(first - 1, 1)
    return last ?? start
  }

  private async copyEvents(start: Mark, end: Mark): Promise<Tally> {
    const { tally, fault } = await this.follow(this.from, start, end, async (events, sum) => {
      await this.to.append(events)
      await this.progress('copied', 'event', sum)
    })
    if (fault !== undefined) throw refuse.brokenChain(this.shown.from, fault)
    return tally
  }

  private async follow(
    side: Side,
    start: Mark,
    end: Mark,
    use: (events: Event[], sum: number) => Promise<void> | void,
  ): Promise<{ tally: Tally; fault: string | undefined }> {
    const tally = new Tally()
    for (let at = start; ;) {
      const events = await side.events(at.position, CHUNK)
      const last = events.at(-1)
      const isLast = events.length < CHUNK || !last
      const fault = chainFault(events, at, isLast ? end : last)
      if (fault !== undefined) return { tally, fault }
      tally.add('event', events)
      await use(events, tally.rows)
      if (isLast) return { tally, fault }
      at = last
    }
  }

  /** Everything is read back, while it still can be taken back. */
  private async compare(written: Map<Part, Tally>, head: Head): Promise<void> {
    const { to } = this.shown
    for (const table of TABLES) {
      const tally = new Tally()
      for await (const page of pagesOf(this.to, table)) {
        tally.add(table, page)
        await this.progress('checked', table, tally.rows)
      }
      const fault = written.get(table)!.difference(tally)
      if (fault !== undefined) throw refuse.differs(to, `${table}: ${fault}`)
    }
    const found = await this.to.head()
    const names = Object.keys(head) as (keyof Head)[]
    const wrong = names.find((name) => found[name] !== head[name])
    if (wrong !== undefined) throw refuse.differs(to, `head: ${wrong}`)
    const start = await this.to.checkpoint()
    const { tally, fault } = await this.follow(this.to, start, head, (_, sum) =>
      this.progress('checked', 'event', sum),
    )
    if (fault !== undefined) throw refuse.differs(to, fault)
    const other = written.get('event')!.difference(tally)
    if (other !== undefined) throw refuse.differs(to, `events: ${other}`)
  }
}

async function* pagesOf(side: Side, table: TableName): AsyncGenerator<AnyRow[]> {
  const size = IS_APART[table] ? TEXTS_PER_CHUNK : CHUNK
  for (let after: string | undefined; ;) {
    const rows: AnyRow[] = await side.rows(table, after, size)
    if (rows.length > 0) yield rows
    if (rows.length < size) return
    after = rows.at(-1)![KEYS[table] as keyof AnyRow]
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
