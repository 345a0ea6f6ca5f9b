import { type AnyRow, type Changes, type TableName, TABLES } from '../../core/schema/schema.ts'
import type { Event } from '../../core/event.ts'
import { EMPTY_HEAD } from '../writer/chain.ts'
import { MemoryTables } from '../memory.ts'
import type { Change, Commit, Contents, Head } from '../port.ts'

/** Events that stay in the document; older ones are pruned behind the checkpoint. */
export const EVENTS_MAX = 1_000

/**
 * How many publications a document remembers: for so long may a writer be paused between link and
 * read-back and still learn whether its state became part of the store. A single fast process
 * publishes 400 in a second, so that less would make a loaded machine answer "unknown".
 */
const LINEAGE_MAX = 512

/** One published state. Never changed: a commit makes the next one. */
export interface State {
  number: number
  /** `<number>.<random>`: names this publication, wherever its number may be found again. */
  id: string
  /** Ids of the publications that led here, oldest first, this one last. */
  lineage: string[]
  head: Head
  /** The event before the first kept one, where the chain goes on. */
  checkpoint: { position: number; hash: string }
  events: Event[]
  tables: MemoryTables
}

export function emptyState(epoch: number): State {
  const head = { ...EMPTY_HEAD, epoch }
  const checkpoint = { position: head.position, hash: head.hash }
  return {
    number: 0,
    id: '0',
    lineage: [],
    head,
    checkpoint,
    events: [],
    tables: new MemoryTables(),
  }
}

/** What a commit makes of `state`, to be published as `number` under `id`. */
export function nextState(state: State, commit: Commit, number: number, id: string): State {
  const lineage = [...state.lineage, id].slice(-LINEAGE_MAX)
  return { ...changedState(state, commit), number, id, lineage, head: commit.head }
}

/** A state in which something was changed, not to be published yet. */
export function changedState(state: State, change: Partial<Change>): State {
  const { changes = {}, forgets, begins } = change
  const all = [...state.events, ...(change.events ?? [])]
  const forgotten = forgets?.position ?? 0
  const events = all.slice(-EVENTS_MAX).filter(({ position }) => position > forgotten)
  const pruned = all[all.length - events.length - 1]
  const { position, hash } = pruned ?? begins ?? state.checkpoint
  return {
    ...state,
    checkpoint: { position, hash },
    events,
    tables: changed(state.tables, changes),
  }
}

/** A state as databases are read: by keys in the order of their bytes, not that of JavaScript. */
export function contentsOf({ tables, events, checkpoint }: State): Contents {
  const sorted = new Map<TableName, Buffer[]>()
  const keysOf = (table: TableName) => {
    const keys = Array.from(tables.rows[table].keys(), (key) => Buffer.from(key))
    return keys.toSorted((a, b) => Buffer.compare(a, b))
  }
  return {
    rows: (table, after, limit) => {
      const keys = sorted.get(table) ?? keysOf(table)
      sorted.set(table, keys)
      const behind = Buffer.from(after ?? '')
      const rest =
        after === undefined ? keys : keys.filter((key) => Buffer.compare(key, behind) > 0)
      return rest.slice(0, limit).map((key) => tables.get(table, key.toString())!)
    },
    events: (after, limit) => events.filter(({ position }) => position > after).slice(0, limit),
    start: () => checkpoint,
  }
}

/** Readers may still look at the old tables: what changes is copied, nothing changed in place. */
function changed(tables: MemoryTables, changes: Changes): MemoryTables {
  const next = new MemoryTables()
  const rows = next.rows as Record<TableName, Map<string, AnyRow>>
  for (const table of TABLES) {
    const old = tables.rows[table] as Map<string, AnyRow>
    rows[table] = changes[table] ? new Map(old) : old
  }
  next.apply(changes)
  return next
}
