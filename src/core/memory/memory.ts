import type { Memory, MemoryConflict, MemoryVersion } from '../schema/memory.ts'
import type { Caller } from '../caller.ts'
import { checkFence, lockOf } from '../locks/lease.ts'
import { openConflicts, realign, settleSibling } from './conflict.ts'
import { headsOf, versionOf } from './history.ts'
import type { TextTools } from './merge.ts'
import { type Added, addVersion, type Draft, isExpired, memoryAt } from './version.ts'
import { planted } from '../planted.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import type { View } from '../view.ts'

export interface PutMemory {
  scope: string
  key: string
  /** Null deletes: the note is then only in its history. */
  content: string | null
  /** The version that the writer has read. */
  based_on?: number | undefined
  confidence?: number | undefined
  /** Left out: those of the version it is based on. */
  tags?: string[] | undefined
  ttl_ms?: number | undefined
  /** Written under the lease of this task, which must be the caller's. */
  task_id?: string | undefined
  fence?: number | undefined
}

export interface Put extends Added {
  /** Whether anything was written: what is there already is not written again. */
  written: boolean
  /** What it disagrees with, merged or open; also one that was open before and still is. */
  conflict: MemoryConflict | null
}

/**
 * Writes a version of a note. On the version that is the present it takes its place; so it does on
 * none, where the present is the writer's own. On an older one, or on none where another agent's
 * content is there, both are kept as siblings and a conflict is
 * recorded, unless the strategy of the scope merges them cleanly. Equal content changes nothing.
 *
 * Refuses `not_found` for a base that never was, `invalid` for a fence without its task, and what
 * `checkFence` refuses for a write under a lease.
 */
export function putMemory(view: View, ask: PutMemory, caller: Caller, tools: TextTools): Put {
  const { scope, key, based_on, content } = ask
  const fence = fenceOf(view, ask, caller)
  const memory = memoryAt(view, scope, key)
  if (based_on !== undefined && based_on > (memory?.version ?? 0)) {
    throw unknownVersion(scope, key, based_on, memory)
  }
  const heads = memory ? headsOf(view, memory) : []
  const isLive = memory !== undefined && memory.live && !isExpired(view, memory)
  const measured = tools.measure(content ?? '')
  const on = heads.find(({ version }) => version === based_on) ?? ownNewest(heads, based_on, caller)
  const equal = heads.find(({ kept, hash }) => isLive && kept && hash === measured.hash)
  if (memory && equal && (!on || on === equal) && saysNothingNew(ask, equal)) {
    return { memory, version: equal, written: false, conflict: conflictOf(view, memory, equal) }
  }
  const draft = { ...draftOf(view, ask, caller, on, equal), ...measured, fence }
  const isFresh = heads.length === 0 || isFreshStart(view, memory!, heads, based_on)
  const put = isFresh || planted('S9') ? 'behind all' : equal || on ? 'behind' : 'beside'
  return {
    written: true,
    ...place(view, put, draft, { heads, on, equal, based_on }, caller, tools),
  }
}

/** A writer that names no version knows its own, if nobody else has written since. */
function ownNewest(
  heads: MemoryVersion[],
  based_on: number | undefined,
  { agent }: Caller,
): MemoryVersion | undefined {
  const [newest, ...others] = heads
  if (based_on !== undefined || others.length > 0) return undefined
  // What was merged has words of others in it.
  return newest?.author === agent && newest.kind === 'put' ? newest : undefined
}

interface Places {
  heads: MemoryVersion[]
  on: MemoryVersion | undefined
  equal: MemoryVersion | undefined
  based_on: number | undefined
}

/** Puts a version where it belongs in the history, and settles what that changes. */
function place(
  view: View,
  where: 'behind all' | 'behind' | 'beside',
  draft: Draft,
  { heads, on, equal, based_on }: Places,
  caller: Caller,
  tools: TextTools,
): Omit<Put, 'written'> {
  const all = heads.map(({ version }) => version)
  if (where === 'beside') {
    const known = based_on !== undefined && versionOf(view, heads[0]!.memory_id, based_on)
    const parents = known ? [based_on] : []
    const sibling = addVersion(view, { ...draft, parents }, (fresh) => [...all, fresh])
    tellPut(view, sibling, caller)
    const { added, conflict } = settleSibling(view, sibling, caller, tools)
    return { ...added, conflict }
  }
  // Where another sibling says the same, both are its parents: nothing is left to settle.
  const replaced = [...new Set([on, equal].flatMap((each) => each?.version ?? []))]
  const parents = where === 'behind all' ? all : replaced
  const next = (fresh: number) => {
    const first = all.findIndex((each) => parents.includes(each))
    const at = (each: number, i: number) => (i === first ? fresh : each)
    const kept = all.map(at).filter((each) => !parents.includes(each))
    return first < 0 ? [...kept, fresh] : kept
  }
  const added = addVersion(view, { ...draft, parents: parents.toSorted((a, b) => a - b) }, next)
  tellPut(view, added, caller)
  realign(view, added, caller, tools, 'equal')
  return { ...added, conflict: conflictOf(view, added.memory, added.version) }
}

/** Nothing is there to disagree with: it was pruned, has expired, or is known to be deleted. */
function isFreshStart(
  view: View,
  memory: Memory,
  heads: MemoryVersion[],
  based_on: number | undefined,
): boolean {
  if (memory.live) return isExpired(view, memory)
  // A put that is based on a version from before the deletion does not know of the deletion.
  return based_on === undefined || heads.some(({ version }) => version === based_on)
}

/**
 * Deletes a note: its newest version says so, and its history stays. On an older version than the
 * present one, this is a conflict like any other.
 *
 * Refuses `not_found` where there is no such note, and `conflict` when siblings disagree and no
 * base says which of them is meant.
 */
export function deleteMemory(
  view: View,
  ask: Omit<PutMemory, 'content' | 'tags' | 'ttl_ms' | 'confidence'>,
  caller: Caller,
  tools: TextTools,
): Put {
  const { scope, key } = ask
  const memory = getMemory(view, scope, key)
  if (memory.heads.length > 1 && ask.based_on === undefined) {
    const ids = openConflicts(view, memory.id).map(({ id }) => id)
    throw new Refusal('conflict', `${word(scope)} ${word(key)} has versions that disagree`, {
      next: 'Resolve it first (memory conflicts), or say which version you mean: based_on.',
      details: { heads: memory.heads, conflicts: ids },
    })
  }
  const based_on = ask.based_on ?? memory.heads[0]
  return putMemory(view, { ...ask, content: null, based_on }, caller, tools)
}

/** The note, or `not_found`; one that was deleted or has expired is not there. */
export function getMemory(view: View, scope: string, key: string): Memory {
  const memory = memoryAt(view, scope, key)
  if (memory && memory.live && !isExpired(view, memory)) return memory
  const why = memory ? (memory.live ? ' any more: it has expired' : ' any more: deleted') : ''
  throw new Refusal('not_found', `There is no memory ${word(key)} in ${word(scope)}${why}`, {
    next: memory
      ? [
          { says: 'See what it said', operation: 'memory.history', input: { key, scope } },
          'Or put it anew.',
        ]
      : [
          { says: 'See what there is', operation: 'memory.list' },
          { says: 'Write it', operation: 'memory.put', input: { key, scope, content: 'CONTENT' } },
        ],
    details: { scope, key, version: memory?.version ?? null },
  })
}

/** The open conflict that a version is a side of. */
function conflictOf(view: View, memory: Memory, { version }: MemoryVersion): MemoryConflict | null {
  if (memory.heads.length < 2) return null
  const sides = ({ ours, theirs }: MemoryConflict) => ours === version || theirs === version
  return openConflicts(view, memory.id).find(sides) ?? null
}

function tellPut(view: View, { memory, version }: Added, { agent }: Caller): void {
  const { scope, key } = memory
  const { parents, size, task_id } = version
  const type = version.kind === 'delete' ? 'memory.deleted' : 'memory.put'
  const data = { scope, key, version: version.version, parents, size }
  view.record(type, { agent, task: task_id }, data)
}

/** Under a lease, or not at all: a fence proves nothing without the task it belongs to. */
function fenceOf(view: View, { task_id, fence }: PutMemory, caller: Caller): number | null {
  if (task_id !== undefined) return checkFence(view, lockOf(task_id), fence, caller).fence
  if (fence === undefined) return null
  throw new Refusal('invalid', 'A fence was given without the task that it belongs to', {
    next: 'Give task_id too, or leave the fence out.',
  })
}

/** The same content again may bring new tags or confidence: what it leaves out stays as it is. */
function draftOf(
  view: View,
  ask: PutMemory,
  { agent }: Caller,
  on: MemoryVersion | undefined,
  again: MemoryVersion | undefined,
) {
  const { scope, key, content, confidence, tags, ttl_ms, task_id } = ask
  return {
    scope,
    key,
    content,
    kind: content === null ? ('delete' as const) : ('put' as const),
    strategy: null,
    author: agent,
    task_id: task_id ?? null,
    confidence: confidence ?? again?.confidence ?? null,
    tags: [...new Set(tags ?? (again ?? on)?.tags)],
    expires_ms: ttl_ms === undefined ? (again?.expires_ms ?? null) : view.now + ttl_ms,
  }
}

/** Whether a put of the same content leaves all else as it is, too. */
function saysNothingNew({ confidence, tags, ttl_ms }: PutMemory, there: MemoryVersion): boolean {
  const sorted = (each: string[]) => each.toSorted().join('\n')
  const sameTags = tags === undefined || sorted([...new Set(tags)]) === sorted(there.tags)
  return sameTags && ttl_ms === undefined && (confidence ?? there.confidence) === there.confidence
}

function unknownVersion(scope: string, key: string, version: number, memory: Memory | undefined) {
  const newest = memory ? `the newest is ${memory.version}` : 'there is no such note'
  return new Refusal(
    'not_found',
    `${word(scope)} ${word(key)} has no version ${version}: ${newest}`,
    {
      next: [
        { says: 'Read it first', operation: 'memory.get', input: { key, scope } },
        'Leave based_on out for a new note.',
      ],
      details: { scope, key, version, newest: memory?.version ?? null },
    },
  )
}
