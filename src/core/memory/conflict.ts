import type { Memory, MemoryConflict, MemoryVersion, Strategy } from '../schema/memory.ts'
import type { Caller } from '../caller.ts'
import { commonAncestor, versionOf } from './history.ts'
import { MERGES_TRIED_MAX } from '../bounds.ts'
import { type Merged, mergeSides, type MergeSide, type Sides, type TextTools } from './merge.ts'
import { strategyOf } from './settings.ts'
import { type Added, addVersion, textOf } from './version.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** A conflict is known by what it is about: the same two versions are the same conflict. */
function conflictId(tools: TextTools, memory_id: string, ours: number, theirs: number): string {
  return tools.measure(keyOf(memory_id, String(ours), String(theirs))).hash.slice(0, 12)
}

export function sideOf(view: View, memory_id: string, version: number): MergeSide {
  const row = versionOf(view, memory_id, version)!
  return { row, content: textOf(view, row) }
}

/** The open conflicts of a note: one for each sibling beside the first head. */
export function openConflicts(view: View, memory_id: string): MemoryConflict[] {
  return [...view.scan('conflicts_of', memory_id)].filter(({ status }) => status === 'open')
}

/**
 * A version was written beside the others: merges it with each head, in their order, that the
 * strategy of the scope can merge it with cleanly. What comes of one merge is tried with those that
 * are left, from the first on, for it may fit where neither did. Heads that did not fit each other
 * before are not tried with each other again. Where nothing fits, a conflict with the first head is
 * opened.
 */
export function settleSibling(
  view: View,
  sibling: Added,
  caller: Caller,
  tools: TextTools,
): { added: Added; conflict: MemoryConflict } {
  const { memory, version } = sibling
  const strategy = strategyOf(view, memory.scope)
  const fold: Fold = { view, strategy, caller, tools, sibling, left: MERGES_TRIED_MAX, why: null }
  const first = mergeWithOne(fold, sibling)
  if (!first) {
    const pair = new Pair(view, memory.id, memory.heads[0]!, version.version)
    const about = { ...pair.about(strategy), why: fold.why }
    return { added: sibling, conflict: openConflict(view, memory, about, caller, tools) }
  }
  let { added } = first
  for (let next = mergeWithOne(fold, added); next; next = mergeWithOne(fold, added)) {
    added = next.added
  }
  realign(view, added, caller, tools)
  return { added, conflict: first.conflict }
}

interface Fold {
  view: View
  strategy: Strategy
  caller: Caller
  tools: TextTools
  /** What was put, which all merges are made for. */
  sibling: Added
  /** How many pairs may still be tried. */
  left: number
  /** Why the first that was tried could not be merged. */
  why: string | null
}

/** Two heads, and what both grew from, looked for once and only when it is needed. */
class Pair {
  private found: number | null | undefined

  constructor(
    private readonly view: View,
    private readonly memory_id: string,
    private readonly ours: number,
    private readonly theirs: number,
  ) {}

  private ancestor(): number | null {
    const { view, memory_id, ours, theirs } = this
    if (this.found === undefined) this.found = commonAncestor(view, memory_id, ours, theirs)
    return this.found
  }

  about(strategy: Strategy): About {
    return { ours: this.ours, theirs: this.theirs, base: this.ancestor(), strategy }
  }

  /** A text is read where it is needed only: it may be a megabyte. */
  get sides(): Sides {
    const { view, memory_id } = this
    return {
      base: () => {
        const base = this.ancestor()
        const basis = base === null ? undefined : versionOf(view, memory_id, base)
        return basis && textOf(view, basis)
      },
      ours: () => sideOf(view, memory_id, this.ours),
      theirs: () => sideOf(view, memory_id, this.theirs),
    }
  }
}

/** Merges a head with the first of the others that it fits; undefined where it fits none. */
function mergeWithOne(
  fold: Fold,
  { memory, version: { version } }: Added,
): { added: Added; conflict: MemoryConflict } | undefined {
  const { view, strategy, caller, tools } = fold
  for (const ours of memory.heads) {
    if (ours === version || fold.left === 0) continue
    fold.left -= 1
    const pair = new Pair(view, memory.id, ours, version)
    const merged = mergeSides(strategy, pair.sides, tools)
    if ('why' in merged) {
      fold.why ??= merged.why
      continue
    }
    const added = addMerge(fold, memory, [ours, version], merged)
    const closed = { ...closing(view, caller, 'merged'), result: added.version.version }
    const conflict = put(view, memory, pair.about(strategy), caller, tools, closed)
    const more = { version: added.version.version, strategy }
    tell(view, 'memory.merged', conflict, caller, more)
    return { added, conflict }
  }
  return undefined
}

/** Writes what came of a merge; it stands where the first of its parents stood. */
function addMerge(
  { view, strategy, caller, tools, sibling }: Fold,
  { scope, key, heads }: Memory,
  parents: [number, number],
  { content, like }: Exclude<Merged, { why: string }>,
): Added {
  const { task_id, fence } = sibling.version
  const { confidence, tags, expires_ms } = like
  const draft = {
    ...{ scope, key, content, strategy, author: caller.agent, task_id, fence, parents },
    kind: content === null ? ('delete' as const) : ('merge' as const),
    ...{ confidence, tags, expires_ms },
    ...tools.measure(content ?? ''),
  }
  const first = heads.findIndex((each) => parents.includes(each))
  return addVersion(view, draft, (fresh) =>
    heads.flatMap((each, i) => (i === first ? fresh : parents.includes(each) ? [] : each)),
  )
}

type About = Pick<MemoryConflict, 'ours' | 'theirs' | 'base' | 'strategy'>

function put(
  view: View,
  memory: Memory,
  about: About,
  { agent }: Caller,
  tools: TextTools,
  more: Partial<MemoryConflict>,
): MemoryConflict {
  const conflict: MemoryConflict = {
    id: conflictId(tools, memory.id, about.ours, about.theirs),
    memory_id: memory.id,
    scope: memory.scope,
    key: memory.key,
    ...about,
    status: 'open',
    why: null,
    opened_by: agent,
    opened_at: view.at,
    opened_ms: view.now,
    closed_by: null,
    closed_at: null,
    result: null,
    replaced_by: null,
    ...more,
  }
  view.put('memory_conflict', conflict)
  return conflict
}

const closing = (view: View, { agent }: Caller, status: MemoryConflict['status']) => ({
  status,
  closed_by: agent,
  closed_at: view.at,
})

function openConflict(
  view: View,
  memory: Memory,
  about: About & { why: string | null },
  caller: Caller,
  tools: TextTools,
): MemoryConflict {
  const conflict = put(view, memory, about, caller, tools, { why: about.why })
  view.record('memory.conflicted', caller, disagreement(conflict))
  return conflict
}

/** Events name versions, never contents: those may be megabytes, and are data. */
function tell(
  view: View,
  type: 'memory.merged' | 'memory.resolved',
  conflict: MemoryConflict,
  { agent }: Caller,
  how: { version: number; strategy: string },
): void {
  view.record(type, { agent }, { ...disagreement(conflict), ...how })
}

const disagreement = ({ id, scope, key, ours, theirs }: MemoryConflict) => ({
  scope,
  key,
  conflict: id,
  ours,
  theirs,
})

/**
 * After `version` took the place of some heads: a conflict about one of those heads is settled if
 * `version` stands for both sides, else it goes on under a new id. An agent that looked at the old
 * conflict has not seen what it is about now, and is told so.
 */
export function realign(
  view: View,
  { memory, version }: Added,
  caller: Caller,
  tools: TextTools,
  how: string | null = null,
): void {
  const isHead = (each: number) => memory.heads.includes(each)
  const now = (each: number) => (isHead(each) ? each : version.version)
  for (const conflict of openConflicts(view, memory.id)) {
    const [ours, theirs] = [now(conflict.ours), now(conflict.theirs)]
    if (ours === conflict.ours && theirs === conflict.theirs) continue
    if (ours === theirs) {
      settle(view, conflict, caller, version, how)
      continue
    }
    const [first, second] = ours === memory.heads[0] ? [ours, theirs] : [theirs, ours]
    const replaced_by = conflictId(tools, memory.id, first, second)
    view.put('memory_conflict', { ...conflict, ...closing(view, caller, 'replaced'), replaced_by })
    if (view.get('memory_conflict', replaced_by)) continue
    const base = commonAncestor(view, memory.id, first, second)
    const { strategy, why } = conflict
    openConflict(view, memory, { ours: first, theirs: second, base, strategy, why }, caller, tools)
  }
}

function settle(
  view: View,
  conflict: MemoryConflict,
  caller: Caller,
  { version }: MemoryVersion,
  how: string | null,
): void {
  const settled: MemoryConflict = {
    ...conflict,
    ...closing(view, caller, 'resolved'),
    strategy: how ?? conflict.strategy,
    result: version,
  }
  view.put('memory_conflict', settled)
  tell(view, 'memory.resolved', settled, caller, { version, strategy: settled.strategy })
}
