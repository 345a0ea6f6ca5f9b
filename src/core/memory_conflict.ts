import type { Caller } from './caller.ts'
import { commonAncestor, versionOf } from './memory_history.ts'
import { mergeSides, type Side, type TextTools } from './memory_merge.ts'
import type { Memory, MemoryConflict, MemoryVersion } from './memory_rows.ts'
import { strategyOf } from './memory_settings.ts'
import { type Added, addVersion, textOf } from './memory_version.ts'
import { keyOf } from './rows.ts'
import type { View } from './view.ts'

/** A conflict is known by what it is about: the same two versions are the same conflict. */
function conflictId(tools: TextTools, memory_id: string, ours: number, theirs: number): string {
  return tools.measure(keyOf(memory_id, String(ours), String(theirs))).hash.slice(0, 12)
}

export function sideOf(view: View, memory_id: string, version: number): Side {
  const row = versionOf(view, memory_id, version)!
  return { row, content: textOf(view, row) }
}

/** The open conflicts of a note: one for each sibling beside the first head. */
export function openConflicts(view: View, memory_id: string): MemoryConflict[] {
  return [...view.scan('conflicts_of', memory_id)].filter(({ status }) => status === 'open')
}

/**
 * A version was written beside the others: merges it with the first head if the strategy of the
 * scope can do so cleanly, else opens a conflict.
 */
export function settleSibling(
  view: View,
  sibling: Added,
  caller: Caller,
  tools: TextTools,
): { added: Added; conflict: MemoryConflict } {
  const { memory, version } = sibling
  const [ours] = memory.heads as [number]
  const strategy = strategyOf(view, memory.scope)
  const base = commonAncestor(view, memory.id, ours, version.version)
  const basis = base === null ? undefined : versionOf(view, memory.id, base)
  const sides = {
    // A text is read where it is needed only: it may be a megabyte.
    base: () => basis && textOf(view, basis),
    ours: () => sideOf(view, memory.id, ours),
    theirs: () => sideOf(view, memory.id, version.version),
  }
  const merged = mergeSides(strategy, sides, tools)
  const about = { ours, theirs: version.version, base, strategy }
  if ('why' in merged) {
    const conflict = openConflict(view, memory, { ...about, why: merged.why }, caller, tools)
    return { added: sibling, conflict }
  }
  const draft = {
    ...{ scope: memory.scope, key: memory.key, strategy, author: caller.agent },
    kind: merged.content === null ? ('delete' as const) : ('merge' as const),
    ...{ task_id: version.task_id, fence: version.fence },
    ...{ confidence: merged.like.confidence, tags: merged.like.tags },
    expires_ms: merged.like.expires_ms,
    content: merged.content,
    ...tools.measure(merged.content ?? ''),
    parents: [ours, version.version],
  }
  const rest = memory.heads.slice(1, -1)
  const added = addVersion(view, draft, (fresh) => [fresh, ...rest])
  const conflict = put(view, memory, about, caller, tools, {
    ...closing(view, caller, 'merged'),
    result: added.version.version,
  })
  tell(view, 'memory.merged', conflict, caller, { version: added.version.version, strategy })
  realign(view, added, caller, tools)
  return { added, conflict }
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
  tell(view, 'memory.conflicted', conflict, caller, {})
  return conflict
}

/** Events name versions, never contents: those may be megabytes, and are data. */
function tell(
  view: View,
  type: string,
  { id, scope, key, ours, theirs }: MemoryConflict,
  { agent }: Caller,
  more: Record<string, unknown>,
): void {
  const data = { scope, key, conflict: id, ours, theirs, ...more }
  view.record({ type, agent, lock: null, task: null, data })
}

/**
 * After `version` took the place of some heads: conflicts that were about one of those are settled
 * if it stands for both sides, else they go on under a new id. Whoever looked at the old one has
 * not seen what it is about now, and is told so.
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
    view.put('memory_conflict', {
      ...conflict,
      ...closing(view, caller, 'replaced'),
      replaced_by,
    })
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
