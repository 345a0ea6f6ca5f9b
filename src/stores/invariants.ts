import type { Event } from '../core/event.ts'
import type { Lease } from '../core/schema/lock.ts'
import type { Memory, MemoryConflict, MemoryVersion } from '../core/schema/memory.ts'
import { type AnyRow, IS_APART, KEYS, type TableName } from '../core/schema/schema.ts'
import type { Ready, Run, Task } from '../core/schema/task.ts'
import { lockOf } from '../core/locks/lease.ts'
import { inFront, readyRowsOf } from '../core/tasks/ready.ts'
import type { EventPlace } from '../core/view.ts'
import { sha256 } from '../machine/digest.ts'
import { Chain } from './writer/chain.ts'
import { FENCES_PER_EPOCH } from './writer/layer.ts'
import type { Contents, Head } from './port.ts'

/** Rows and events that are in memory at a time. */
const CHUNK = 500
/** Of long texts, fewer: each may be a megabyte. */
const TEXTS_PER_CHUNK = 16
/** Rows that are named; one that is wrong is seldom alone. */
export const NAMED_MAX = 20

/** The tables that say the same in several ways, in the order in which they have to be seen. */
export const CHECKED = [
  'ready',
  'task',
  'lease',
  'run',
  'memory',
  'memory_version',
  'memory_text',
  'memory_conflict',
] as const satisfies TableName[]

/** A note as its versions tell it. */
interface Note {
  heads: number[]
  versions: Set<number>
  parents: Set<number>
  conflicts: number
}

/**
 * What rules keep true of each other's rows and events, in every store. All are shown to it once,
 * one by one; in memory stays little of each row, and of a body or a text nothing.
 */
export class Invariants {
  private readonly ready = new Map<string, Ready>()
  /** The first ready row of each list of a user, which stands in the scope too. */
  private readonly fronts = new Map<string, Ready>()
  private readonly unready = new Set<string>()
  private readonly inProgress = new Set<string>()
  private readonly runs = new Map<string, string | null>()
  private readonly live = new Set<string>()
  private readonly notes = new Map<string, Note>()
  /** The hash of each text that has to be there. */
  private readonly texts = new Map<string, string>()
  private readonly otherTexts: string[] = []
  private readonly lostRuns: string[] = []
  private readonly faults: string[] = []
  private granted = 0

  constructor(private readonly head: Head) {}

  seeEvent({ type, position, data }: Event): void {
    if (type !== 'lease.granted') return
    const { fence } = data
    if (fence <= this.granted) {
      this.faults.push(`event ${position} grants fence ${fence} after ${this.granted}`)
    }
    this.granted = fence
  }

  /** Of other tables than `CHECKED` it knows nothing. */
  see(table: TableName, row: AnyRow): void {
    if (table === 'ready') this.ready.set((row as Ready).key, row as Ready)
    else if (table === 'task') this.seeTask(row as Task)
    else if (table === 'lease') this.seeLease(row as Lease)
    else if (table === 'run') this.seeRun(row as Run)
    else if (table === 'memory') this.seeNote(row as Memory)
    else if (table === 'memory_version') this.seeVersion(row as MemoryVersion)
    else if (table === 'memory_text') this.seeText(row as { id: string; content: string })
    else if (table === 'memory_conflict') this.seeConflict(row as MemoryConflict)
  }

  private seeTask(task: Task): void {
    if (task.status === 'in_progress') this.inProgress.add(task.id)
    if (task.run_id !== null) this.runs.set(task.id, task.run_id)
    for (const ready of readyRowsOf(task)) {
      const front = inFront(ready)
      // What an older program wrote stands in front alone, whether it is the first or not.
      const isOld = front !== undefined && !this.ready.has(ready.key)
      if (!this.takeReady(isOld ? front : ready)) this.unready.add(task.id)
      const first = this.fronts.get(ready.scope)
      if (front && !isOld && !(first && first.key < front.key)) this.fronts.set(ready.scope, front)
    }
  }

  /** Whether a row that follows from a task is there. */
  private takeReady({ key, scope, rank, task_id, high }: Ready): boolean {
    const found = this.ready.get(key)
    this.ready.delete(key)
    const isHere = found?.scope === scope && found.rank === rank
    return isHere && found.task_id === task_id && found.high === high
  }

  private seeLease({ name, fence, ended_at }: Lease): void {
    if (ended_at === null) this.live.add(name)
    const highest = this.head.epoch * FENCES_PER_EPOCH + this.head.fences
    if (fence <= highest) return
    this.faults.push(`${name} has fence ${fence}, but only ${highest} was given`)
  }

  private seeRun({ id, task_id, ended_at }: Run): void {
    if (ended_at === null && this.runs.get(task_id) !== id) this.lostRuns.push(id)
  }

  private seeNote({ id, heads }: Memory): void {
    this.notes.set(id, { heads, versions: new Set(), parents: new Set(), conflicts: 0 })
  }

  private seeVersion({ id, memory_id, version, parents, kept, hash }: MemoryVersion): void {
    const note = this.notes.get(memory_id)
    note?.versions.add(version)
    for (const parent of parents) note?.parents.add(parent)
    if (kept) this.texts.set(id, hash)
  }

  private seeText({ id, content }: { id: string; content: string }): void {
    const hash = this.texts.get(id)
    if (hash !== undefined && sha256(content) !== hash) this.otherTexts.push(id)
    this.texts.delete(id)
  }

  private seeConflict({ memory_id, status }: MemoryConflict): void {
    const note = this.notes.get(memory_id)
    if (note && status === 'open') note.conflicts += 1
  }

  /** When all was seen: what is wrong. */
  *found(): Generator<string> {
    yield* this.faults
    for (const front of this.fronts.values()) {
      if (!this.takeReady(front)) this.unready.add(front.task_id)
    }
    for (const { task_id } of this.ready.values()) this.unready.add(task_id)
    yield* named('tasks whose readiness is not what their rows say', this.unready)
    const loose = [...this.inProgress].filter((id) => !this.live.has(lockOf(id)))
    yield* named('tasks in progress without a lease', loose)
    yield* named('open runs that no task knows of', this.lostRuns)
    const notes = [...this.notes]
    const where = (isWrong: (note: Note) => boolean) =>
      notes.filter(([, note]) => isWrong(note)).map(([id]) => id)
    yield* named('notes whose present is not what their history says', where(isTornOff))
    yield* named('versions of notes whose text is missing', this.texts.keys())
    yield* named('notes whose text is not what was written', this.otherTexts)
    const isAlone = ({ heads, conflicts }: Note) => Math.max(0, heads.length - 1) !== conflicts
    yield* named('notes whose siblings are in no conflict', where(isAlone))
  }
}

/** The present of a note is what nobody has built on. */
function isTornOff({ heads, versions, parents }: Note): boolean {
  const tips = [...versions].filter((version) => !parents.has(version))
  return heads.some((head) => !tips.includes(head)) || tips.some((tip) => !heads.includes(tip))
}

/** Keys of notes have their scope in a line of its own. */
function* named(what: string, ids: Iterable<string>): Generator<string> {
  const names = [...ids].slice(0, NAMED_MAX).map((id) => id.replaceAll('\n', ' '))
  if (names.length > 0) yield `${what}: ${names.join(', ')}`
}

/** Everything of a store that can be known to be wrong from what it keeps. */
export async function* faultsIn(contents: Contents, head: Head): AsyncGenerator<string> {
  const invariants = new Invariants(head)
  const fault = await follow(contents, await contents.start(), head, (events) => {
    for (const event of events) invariants.seeEvent(event)
  })
  if (fault !== undefined) yield fault
  for (const table of CHECKED) {
    for await (const rows of pagesOf(contents, table)) {
      for (const row of rows) invariants.see(table, row)
    }
  }
  yield* invariants.found()
}

/** The rows of a table, a few at a time. */
export async function* pagesOf(contents: Contents, table: TableName): AsyncGenerator<AnyRow[]> {
  const size = IS_APART[table] ? TEXTS_PER_CHUNK : CHUNK
  for (let after: string | undefined; ;) {
    const rows: AnyRow[] = await contents.rows(table, after, size)
    if (rows.length > 0) yield rows
    if (rows.length < size) return
    after = rows.at(-1)![KEYS[table] as keyof AnyRow]
  }
}

/** Follows the chain of events, a few at a time. Returns what is wrong with it, or undefined. */
export async function follow(
  contents: Contents,
  start: EventPlace,
  end: EventPlace,
  use: (events: Event[]) => Promise<void> | void,
): Promise<string | undefined> {
  const chain = new Chain(start)
  for (;;) {
    const events = await contents.events(chain.at.position, CHUNK)
    for (const event of events) chain.see(event)
    if (chain.fault === undefined) await use(events)
    if (chain.fault !== undefined || events.length < CHUNK) return chain.faultAt(end)
  }
}
