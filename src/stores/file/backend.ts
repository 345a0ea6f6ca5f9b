import type { Cursor } from '../../core/schema/indexes.ts'
import type { AnyRow, IndexName, TableName, Tables } from '../../core/schema/schema.ts'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { planted } from '../../core/planted.ts'
import type { Event } from '../../core/event.ts'
import type { Damage } from '../damage.ts'
import { MemoryCounter } from '../memory.ts'
import {
  type Base,
  type Change,
  type Commit,
  CommitUnknown,
  type Contents,
  type CopyBackend,
  type Head,
} from '../port.ts'
import { changedState, contentsOf, nextState, type State } from './document.ts'
import { makeFolder } from './durable.ts'
import { damaged, refusalFor, stuck, TASKS_MAX, tooManyTasks } from './errors.ts'
import { epochKey, list, type Newest, readNewest } from './folder.ts'
import { parse, render } from './layout.ts'
import { gone, stranger } from '../successor.ts'
import { Witness } from '../witness.ts'
import { LockFile, pause } from './lockfile.ts'
import { publicationId, publish, type PublishPause } from './publish.ts'

const PAUSE_MS_MAX = 16

export interface FileOptions {
  dir: string
  /** How long to try without anybody making progress before answering `unavailable`. */
  busy_timeout_ms: number
  /** Makes the folder with the right mode, before the first state is written. */
  prepare?: () => void
  /** False for tests: nothing may depend on the lock file. */
  lock?: boolean
  /** For tests: stops a writer at the places where being stopped is dangerous. */
  pause?: PublishPause
}

/**
 * A folder of numbered states, each one JSON document, published by link(2); docs/file-store.md
 * has the protocol. Several processes may write: all decide on the highest state, one of them gets
 * the next number, the others decide again.
 */
export class FileBackend implements CopyBackend {
  readonly isDatabase = false
  readonly counter = new MemoryCounter(() => this.held())
  private readonly lock: LockFile | undefined
  private readonly witness: Witness
  /** Of the newest look at the folder. */
  damage: Damage | undefined
  private known: Newest | undefined
  private begun: State | undefined
  /** What was applied to it. */
  private applied: State | undefined
  /** The newest state that this process has seen. The store never goes back behind it. */
  private seen = { epoch: 0, number: 0 }
  /** Since when our commits found another writer in the way, and at which number. */
  private beaten: { number: number; since_ms: number; times: number } | undefined

  constructor(private readonly options: FileOptions) {
    this.lock = options.lock === false ? undefined : new LockFile(options.dir)
    this.witness = new Witness(epochKey(options.dir))
  }

  async begin(): Promise<Head> {
    try {
      if (this.beaten) await pause(Math.min(2 ** this.beaten.times, PAUSE_MS_MAX))
      if (list(this.options.dir).numbers.length === 0) this.options.prepare?.()
      await this.lock?.take()
      const { state, damage, highest } = await this.load()
      const isSound = damage === undefined || planted('S11')
      if (!state || !isSound) throw damaged(this.options.dir, damage ?? 'no good state')
      this.refuseStandstill(state.number)
      this.begun = planted('S11') ? { ...state, number: highest } : state
      return state.head
    } catch (error) {
      this.rollback()
      throw refusalFor(error, this.options.dir)
    }
  }

  /** The newest state, read again only if another one is in its place. */
  private async load(): Promise<Newest> {
    const { seen } = this
    const { dir } = this.options
    const kept = this.witness.read()
    const found = await readNewest(dir, this.known)
    this.known = found
    this.notice(found.damage)
    if (!found.state || found.damage !== undefined) return found
    const { number, head } = found.state
    const fault = this.witness.faultOf(head, kept)
    // Somebody deleted states. Writing on from an older one would give its fences a second time.
    if (head.epoch < seen.epoch || (head.epoch === seen.epoch && number < seen.number)) {
      // With the whole folder: then all who come now use what is there, and only we knew more.
      if (fault === undefined) throw number === 0 ? gone(dir) : stranger(dir)
      return this.damagedBy(`state.${seen.number}.json was published, and is gone`, found)
    }
    if (fault !== undefined) return this.damagedBy(fault, found)
    this.see(found.state)
    return found
  }

  private damagedBy(damage: string, found: Newest): Newest {
    this.notice(damage)
    return { ...found, damage }
  }

  private notice(why: string | undefined): void {
    const message = why && damaged(this.options.dir, why).message
    if (message === this.damage?.message) return
    this.damage = message ? { message, since: new Date().toISOString() } : undefined
  }

  private see({ number, head: { epoch } }: State): void {
    const further = epoch > this.seen.epoch || number > this.seen.number
    if (epoch >= this.seen.epoch && further) this.seen = { epoch, number }
  }

  private refuseStandstill(number: number): void {
    const { beaten } = this
    if (!beaten || beaten.number !== number) return
    if (performance.now() - beaten.since_ms <= this.options.busy_timeout_ms) return
    this.beaten = undefined
    throw stuck(this.options.dir, this.options.busy_timeout_ms)
  }

  /** Everything is in memory once a transaction has begun. */
  prefetch(): void {}

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.begun!.tables.get(table, key)
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.begun!.tables.scan(index, group, after, limit)
  }

  contents(): Contents {
    // What it will be read as when it is published.
    if (this.applied) this.applied = parse(render(this.applied))
    return contentsOf(this.applied ?? this.begun!)
  }

  apply(change: Partial<Change>): void {
    this.applied = changedState(this.applied ?? this.begun!, change)
  }

  async commit(commit: Commit): Promise<'done' | 'again'> {
    const begun = this.begun!
    const number = begun.number + 1
    const next = nextState(this.applied ?? begun, commit, number, publicationId(number))
    const tasks = next.tables.rows.task.size
    if (tasks > TASKS_MAX && tasks > begun.tables.rows.task.size) throw tooManyTasks()
    try {
      await makeFolder(this.options.dir)
      this.witness.begin(next.head)
      const outcome = await publish(this.options.dir, next, this.options.pause)
      if (outcome === 'again') return this.again(begun.number)
      const { published: identity } = outcome
      this.known = { highest: number, identity, state: next, damage: undefined }
      this.note(next.head)
      this.see(next)
      this.beaten = undefined
      return 'done'
    } finally {
      this.rollback()
    }
  }

  /** It is published: an error here can no longer mean "no". */
  private note(head: Head): void {
    try {
      this.witness.end(head)
    } catch (error) {
      throw new CommitUnknown((error as Error).message)
    }
  }

  private again(number: number): 'again' {
    const { beaten } = this
    const same = beaten?.number === number
    const since_ms = same ? beaten.since_ms : performance.now()
    this.beaten = { number, since_ms, times: (beaten?.times ?? 0) + 1 }
    return 'again'
  }

  rollback(): void {
    this.begun = undefined
    this.applied = undefined
    this.lock?.release()
  }

  async snapshot<T>(look: (base: Base, head: Head) => T): Promise<T> {
    const { tables, head } = await this.read()
    return look(tables, head)
  }

  async events(after: number, limit: number): Promise<Event[]> {
    const { events } = await this.read()
    return events.filter(({ position }) => position > after).slice(0, limit)
  }

  private async held() {
    const { tables, events, number } = await this.read()
    const { dir } = this.options
    const bytes = statSync(join(dir, `state.${number}.json`), { throwIfNoEntry: false })?.size ?? 0
    return { tables, events: events.length, bytes }
  }

  /** A damaged store is still read, from its last good state. */
  private async read(): Promise<State> {
    try {
      const { state, damage } = await this.load()
      if (!state) throw damaged(this.options.dir, damage ?? 'no good state')
      return state
    } catch (error) {
      throw refusalFor(error, this.options.dir)
    }
  }

  close(): void {
    this.rollback()
    this.witness.close()
  }
}
