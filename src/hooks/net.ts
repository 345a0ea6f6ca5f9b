import { admits, STRANGER } from '../core/caller.ts'
import { planted } from '../core/planted.ts'
import { argument, listed, word } from '../core/quote.ts'
import { sha256 } from '../machine/digest.ts'
import { statOf } from '../machine/file_system.ts'
import {
  contentOf,
  dropGuarded,
  type Guarded,
  guardedIn,
  guardFiles,
  keepGuarded,
  type Owned,
  putGuarded,
  sightOfFile,
} from '../machine/guarded.ts'
import type { HookContext } from './context.ts'
import { noteLeft } from './discarded.ts'
import type { HookCall } from './protocol.ts'

/*
 * The second net. What a command writes cannot always be told beforehand; that a reserved file has
 * changed can be told afterwards. Every reserved file has a record of how its holder last left it
 * (machine/guarded.ts). Before and after each tool call of any agent, and at a commit, the records
 * are compared with the files: by stat, and by content only where that differs.
 *
 * The holder's own writes are not news. A call of the holder that may write leaves a marker before
 * it runs: while the marker is there, changes of the files that it names (of a shell: of all that
 * the agent holds) are the holder's, and after the call they are taken into the records. So is a
 * change within GRACE_MS of that: formatters run as hooks beside ours.
 *
 * Any other change is told once: to the agent whose hook sees it, to the holder at its next call,
 * and to all who watch as the event `hook.noticed`.
 */
const GRACE_MS = 2_000
const CALL_MS = 600_000
const MARGIN_MS = 60_000
const MARKER = '.call'
const ASKED_MAX = 100
/** Files that a sentence names. */
const SHOWN_MAX = 3

interface Marker {
  agent: string
  until_ms: number
  /** The files that the call may write; null: all that its agent holds. */
  files: string[] | null
}

const markerOf = (agent: string, { tool_call = '' }: HookCall) =>
  `${sha256(agent).slice(0, 16)}-${sha256(tool_call).slice(0, 16)}${MARKER}`

const isTheirs = ({ holder, pid }: Guarded, { caller }: HookContext) =>
  holder !== '' && (admits(holder, caller.agent) || (!caller.given && pid === caller.process?.pid))

/** Before a call that nothing stands against: `owned` is what it will write, and has reserved. */
export function beginCall(context: HookContext, call: HookCall, owned: Owned[]): void {
  const { folder } = context.around
  const known = new Map(guardedIn(folder).map((each) => [each.path, each]))
  for (const each of owned) {
    const record = known.get(each.path)
    // Kept since it was first reserved; another's is out of date.
    if (!record || !isTheirs(record, context)) keepGuarded(folder, each, 0)
  }
  const writes = owned.length > 0 || call.command !== undefined
  const holds = owned.length > 0 || [...known.values()].some((each) => isTheirs(each, context))
  if (!writes || !holds) return
  const { agent } = context.caller
  const until_ms = Date.now() + (call.timeout_ms ?? CALL_MS) + MARGIN_MS
  const files = call.command === undefined ? owned.map(({ path }) => path) : null
  const name = markerOf(agent, call)
  // Of a protocol that does not tell calls apart, several may be under way.
  const open = guardFiles(folder).read<Marker | null>(name, null)
  const all = files && open?.files !== null ? [...files, ...(open?.files ?? [])] : null
  const marker: Marker = { agent, until_ms, files: all }
  guardFiles(folder).put(name, marker)
}

/** After a call: what it may have written is as its agent left it. */
export function endCall(context: HookContext, call: HookCall): void {
  const { folder } = context.around
  const { agent } = context.caller
  const guard = guardFiles(folder)
  const names = guard.names()
  const own = sha256(agent).slice(0, 16)
  // Of a protocol that does not say which call is over, all are.
  const over = names.filter((name) => {
    if (!name.endsWith(MARKER) || !name.startsWith(own)) return false
    return call.tool_call === undefined || name === markerOf(agent, call)
  })
  const markers = over.flatMap((name) => guard.read<Marker | null>(name, null) ?? [])
  for (const record of markers.length > 0 ? guardedIn(folder, names) : []) {
    const isWritten = markers.some(({ files }) => files?.includes(record.path) ?? true)
    if (!isWritten || !isTheirs(record, context)) continue
    if (sightOfFile(record.path) !== record.seen) keepGuarded(folder, record, Date.now())
  }
  for (const name of over) guard.drop(name)
}

/** Reserved files that were changed, and not by a call of their holder, as sentences; told once. */
export async function noticed(context: HookContext): Promise<string[]> {
  const { folder } = context.around
  if (planted('R52 net')) return []
  const names = guardFiles(folder).names()
  const changed = guardedIn(folder, names).filter(
    (record) => record.holder !== '' && isChanged(folder, record),
  )
  if (changed.length === 0) return []
  const markers = names
    .filter((name) => name.endsWith(MARKER))
    .flatMap((name) => guardFiles(folder).read<Marker | null>(name, null) ?? [])
  const strange = changed.filter((record) => !isHolders(folder, record, markers))
  const said: string[] = []
  const places = new Map<string, Guarded[]>()
  for (const record of strange.slice(0, ASKED_MAX)) {
    const key = JSON.stringify([record.checkout, record.project])
    places.set(key, [...(places.get(key) ?? []), record])
  }
  for (const records of places.values()) said.push(...(await tell(context, records)))
  return said
}

/** Whether there is something else in the file than its holder left there. */
function isChanged(folder: string, record: Guarded): boolean {
  if (sightOfFile(record.path) === record.seen) return false
  const { seen, digest } = contentOf(record.path)
  if (digest !== record.digest) return true
  putGuarded(folder, { ...record, seen })
  return false
}

/** Whether its holder is at it, or was a moment ago: then the change is taken for the holder's. */
function isHolders(folder: string, record: Guarded, markers: readonly Marker[]): boolean {
  const now = Date.now()
  const isOpen = markers.some(({ agent, until_ms, files }) => {
    const isOver = until_ms < now || !admits(record.holder, agent)
    return !isOver && (files?.includes(record.path) ?? true)
  })
  if (isOpen) return true
  const changed_ms = statOf(record.path)?.ctimeMs ?? Infinity
  if (record.wrote_ms === 0 || changed_ms > record.wrote_ms + GRACE_MS) return false
  keepGuarded(folder, record, record.wrote_ms)
  return true
}

async function tell(context: HookContext, records: Guarded[]): Promise<string[]> {
  const { asking, caller, around } = context
  const { checkout, project } = records[0]!
  const where = { checkout, ...(project !== null && { project }), process: caller.process }
  const namesOf = (some: Guarded[]) => ({ ...where, paths: some.map(({ name }) => name) })
  const now = await asking.ask('reserve.check', namesOf(records), caller)
  const lapsed: string[] = []
  const current = records.filter((record, i) => {
    const item = now.items[i]!
    const holder = item.state === 'free' ? '' : item.holder
    if (holder === record.holder || holder === STRANGER) return true
    if (isTheirs(record, context)) lapsed.push(record.name)
    if (record.wrote_ms > 0) noteLeft(around.folder, [record])
    // It went to another, or to nobody, by a door that keeps no records.
    dropGuarded(around.folder, record)
    return false
  })
  const over = lapsed.length > 0 ? [lapsedText(lapsed)] : []
  if (current.length === 0) return over
  const { items } = await asking.ask('hook.notice', namesOf(current), caller)
  /** By whose they are: a formatter may have changed a hundred of one agent. */
  const changed = new Map<string, Changed[]>()
  for (const item of items) {
    const { path, state } = item
    const record = current.find(({ name }) => name === path)!
    if (state === 'free') continue
    const { seen, digest } = contentOf(record.path)
    const lost = record.copy ?? record.lost
    putGuarded(around.folder, { ...record, seen, digest, copy: null, ...(lost && { lost }) })
    const until = state === 'mine' ? '' : item.expires_at
    const key = state === 'mine' ? '' : item.holder
    changed.set(key, [...(changed.get(key) ?? []), { path, until, hasCopy: lost !== undefined }])
  }
  return [...over, ...[...changed].map(([holder, files]) => changedText(holder, files))]
}

/** Of an agent that was away for longer than its TTL. */
const lapsedText = (paths: string[]) =>
  `your reservation of ${listed(paths.map((path) => word(path)))} has ended while you were away, ` +
  'and what was in there has changed since: read it again before you go on'

interface Changed {
  path: string
  until: string
  hasCopy: boolean
}

/** Of the caller itself where there is no `holder`. */
function changedText(holder: string, files: Changed[]): string {
  const names = listed(files.map(({ path }) => word(path)))
  const one = files.length === 1
  const [were, it, is] = one ? ['was', 'it', 'it is'] : ['were', 'them', 'they are']
  const kept = files.filter(({ hasCopy }) => hasCopy).map(({ path }) => argument(path))
  const which = kept.length <= SHOWN_MAX ? kept.join(' ') : 'PATH…'
  const list = kept.length <= SHOWN_MAX ? '' : '; to see which: leasehold reserve guard'
  const back = kept.length === 0 ? '' : ` (leasehold reserve guard ${which} --restore${list})`
  if (holder === '') {
    return (
      `${names}, which you have reserved, ${were} changed, and not by a tool call of yours: ` +
      `look at ${it} before you go on${back}`
    )
  }
  const until = files.reduce((last, each) => (each.until > last ? each.until : last), '')
  return (
    `${names}, reserved by ${word(holder)} until ${until}, ${were} changed, and not by a tool ` +
    `call of that agent, which is told too and can put ${it} back. Leave ${it} as ${is} now`
  )
}

/** What the agent had is free again: nobody is told of its changes any more. */
export function endGuard(folder: string, isOver: (record: Guarded) => boolean): void {
  const over = guardedIn(folder).filter((record) => record.holder !== '' && isOver(record))
  // Never written by its holder, it is not the holder's.
  noteLeft(
    folder,
    over.filter(({ wrote_ms }) => wrote_ms > 0),
  )
  for (const record of over) dropGuarded(folder, record)
}
