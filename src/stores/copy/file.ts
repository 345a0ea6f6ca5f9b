import { type AnyRow, type Changes, KEYS, type TableName } from '../../core/schema/schema.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Event } from '../../core/event.ts'
import { nextState, type State } from '../file/document.ts'
import { damaged, refusalFor, TASKS_MAX } from '../file/errors.ts'
import { readNewest } from '../file/folder.ts'
import { parse, render } from '../file/layout.ts'
import { publicationId, publish } from '../file/publish.ts'
import { CommitUnknown, type Head } from '../port.ts'
import { unknownOutcome } from './refusals.ts'
import { type Mark, type Side, wholeRow } from './side.ts'

/** Events that a document keeps; the one before them becomes its checkpoint. */
export const FILE_EVENTS = 1_000

/** Only what is enqueued has rows here; limits and shares also count what agents claim. */
const QUEUE: ReadonlySet<TableName> = new Set(['lane', 'parking'])

/**
 * A folder of states. The newest is in memory, and never changes; what is written becomes the next
 * one, by one link. No lock keeps others from publishing meanwhile, but the stamp tells.
 */
export class FileSide implements Side {
  readonly isFile = true
  readonly clock = undefined
  private readonly changes: { [T in TableName]?: Map<string, AnyRow> } = {}
  private readonly appended: Event[] = []
  /** Keys in the order of their bytes, which is that of databases and not that of JavaScript. */
  private sorted: { table: TableName; of: State; keys: string[] } | undefined

  private constructor(
    private readonly dir: string,
    private state: State,
  ) {}

  /** Refuses (`damaged`) a folder whose newest state is not good. */
  static async open(dir: string): Promise<FileSide> {
    return new FileSide(dir, await goodState(dir))
  }

  get isPublished(): boolean {
    return this.state.number > 0
  }

  head(): Head {
    return this.state.head
  }

  async stamp(): Promise<string> {
    return (await goodState(this.dir)).id
  }

  checkpoint(): Mark {
    return this.state.checkpoint
  }

  rows(table: TableName, after: string | undefined, limit: number): AnyRow[] {
    const keys = this.keysOf(table)
    const from = after === undefined ? 0 : firstBehind(keys, Buffer.from(after))
    const found = keys.slice(from, from + limit)
    const rows = this.state.tables.rows[table] as Map<string, AnyRow>
    return found.map((key) => wholeRow(table, key, rows.get(key)!))
  }

  private keysOf(table: TableName): string[] {
    const { sorted, state } = this
    if (sorted?.table === table && sorted.of === state) return sorted.keys
    const bytes = Array.from(state.tables.rows[table].keys(), (key) => Buffer.from(key))
    const keys = bytes.toSorted((a, b) => Buffer.compare(a, b)).map((key) => key.toString())
    this.sorted = { table, of: state, keys }
    return keys
  }

  events(after: number, limit: number): Event[] {
    return this.state.events.filter(({ position }) => position > after).slice(0, limit)
  }

  /** Refuses (`invalid`) what a file store does not keep: queue, memory, more tasks than it may. */
  write(table: TableName, rows: AnyRow[]): void {
    const isQueued = (row: AnyRow) => 'queue' in row && row.queue !== null
    if (QUEUE.has(table) || (table === 'task' && rows.some(isQueued))) throw has('a queue')
    if (table === 'memory') throw has('shared memory')
    const into = (this.changes[table] ??= new Map<string, AnyRow>())
    for (const row of rows) into.set(row[KEYS[table] as keyof AnyRow], row)
    if (table === 'task' && into.size > TASKS_MAX) throw hasTooMany()
  }

  append(events: Event[]): void {
    this.appended.push(...events)
  }

  /** From here on the rows that are read are those of the document as it will be published. */
  finish(head: Head, checkpoint: Mark): void {
    const number = this.state.number + 1
    const commit = { changes: this.changes as Changes, events: this.appended, head }
    const start = { ...this.state, checkpoint }
    this.state = parse(render(nextState(start, commit, number, publicationId(number))))
  }

  async commit(): Promise<void> {
    const outcome = await publish(this.dir, this.state).catch((error: unknown) => {
      throw error instanceof CommitUnknown ? unknownOutcome(this.dir, error.message) : error
    })
    if (outcome !== 'again') return
    throw new Refusal('conflict', `${this.dir} was written meanwhile`, {
      next: 'The copy is not whole. Stop what writes there, and copy again to a new place.',
    })
  }

  /** Publishes the very next number: if anybody wrote since, that number is taken. */
  async leave(boot: string): Promise<void> {
    this.finish({ ...this.state.head, boot }, this.state.checkpoint)
    await this.commit()
  }

  close(): void {}
}

async function goodState(dir: string): Promise<State> {
  const { state, damage } = await readNewest(dir).catch((error: unknown) => {
    throw refusalFor(error, dir)
  })
  if (!state || damage !== undefined) throw damaged(dir, damage ?? 'no good state')
  return state
}

/** Where in sorted keys the first one behind `after` stands. */
function firstBehind(keys: string[], after: Buffer): number {
  let [low, high] = [0, keys.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (Buffer.compare(Buffer.from(keys[middle]!), after) > 0) high = middle
    else low = middle + 1
  }
  return low
}

function has(what: string): Refusal {
  return new Refusal('invalid', `The source has ${what}, which a file store does not keep`, {
    next: 'Copy to SQLite or PostgreSQL: --to sqlite:PATH, or --to postgres://…',
  })
}

function hasTooMany(): Refusal {
  return new Refusal('invalid', `A file store keeps at most ${TASKS_MAX} tasks`, {
    next: 'Copy to SQLite or PostgreSQL: --to sqlite:PATH, or --to postgres://…',
    details: { tasks_max: TASKS_MAX },
  })
}
