import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { admits, STRANGER } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import { gitPlace } from '../machine/checkout.ts'
import { processFact } from '../machine/process.ts'
import { planted } from '../core/planted.ts'
import { argument, listed, word } from '../core/quote.ts'
import { sha256 } from '../machine/digest.ts'
import { statOf } from '../machine/file_system.ts'
import {
  contentOf,
  dropGuarded,
  type Guarded,
  guardedIn,
  guardFolder,
  keepGuarded,
  namesIn,
  type Owned,
  putGuarded,
  sightOfFile,
} from '../machine/guarded.ts'
import { writePrivate } from '../machine/private_file.ts'
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
  /** Folders in which it commits. */
  commits?: string[]
  /** Folders in which it has git take back or throw away what is not committed. */
  discards?: string[]
  began_ms: number
  process: ProcessRef | null
}

const markerOf = (agent: string, { tool_call = '' }: HookCall) =>
  `${sha256(agent).slice(0, 16)}-${sha256(tool_call).slice(0, 16)}${MARKER}`

const isTheirs = ({ holder, pid }: Guarded, { caller }: HookContext) =>
  holder !== '' && (admits(holder, caller.agent) || (!caller.given && pid === caller.process?.pid))

/** Before a call that nothing stands against: `owned` is what it will write, and has reserved. */
export function beginCall(
  context: HookContext,
  call: HookCall,
  owned: Owned[],
  committed: string[],
): void {
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
  const [open] = readMarker(folder, name)
  const all = files && open?.files !== null ? [...files, ...(open?.files ?? [])] : null
  const commits = [...committed, ...(open?.commits ?? [])]
  putMarker(context, name, {
    ...markerFor(context, until_ms, all),
    ...(commits.length > 0 && { commits }),
    ...(open?.discards && { discards: open.discards }),
  })
}

const markerFor = (
  { caller: { agent, process } }: HookContext,
  until_ms: number,
  files: Marker['files'],
): Marker => ({ agent, until_ms, files, began_ms: Date.now(), process: process ?? null })

function putMarker({ around: { folder } }: HookContext, name: string, marker: Marker): void {
  attempt(() => {
    const place = guardFolder(folder)
    if (!existsSync(place)) mkdirSync(place, { mode: 0o700 })
    writePrivate(place, name, JSON.stringify(marker), { synced: false })
  }, undefined)
}

/*
 * What git takes back is looked at before it runs, and somebody may write in between. So who
 * discards says so first and then looks at who is writing, and who writes says so first and then
 * looks at who discards: one of the two sees the other.
 */
const DISCARD_MS = 10_000
const WAIT_MS = 2_000
const LOOK_MS = 50

/** Before it is looked at what git would take back in `dirs`. */
export function beginDiscard(context: HookContext, call: HookCall, dirs: string[]): void {
  if (dirs.length === 0) return
  const until_ms = Date.now() + (call.timeout_ms ?? CALL_MS) + MARGIN_MS
  const marker = { ...markerFor(context, until_ms, null), discards: dirs.map(topOf) }
  putMarker(context, markerOf(context.caller.agent, call), marker)
}

const topOf = (dir: string) => gitPlace(dir)?.top ?? dir

/** The call does not take place. */
export function dropMarker({ around, caller }: HookContext, call: HookCall): void {
  rmSync(join(guardFolder(around.folder), markerOf(caller.agent, call)), { force: true })
}

/** What calls of others may be writing now in the checkout of `dir`. */
export function writtenNow({ around, caller }: HookContext, dir: string): Guarded[] {
  const names = namesIn(around.folder)
  const markers = markersAmong(around.folder, names)
  return guardedIn(around.folder, names).filter((record) => {
    const isOthers = record.holder !== '' && !admits(record.holder, caller.agent)
    return isOthers && topOf(dirname(record.path)) === topOf(dir) && isAtWork(record, markers)
  })
}

/** Waits while another's command takes back what is about to be written. Who, if it goes on. */
export async function takenBackBy(
  { around, caller }: HookContext,
  owned: readonly Owned[],
): Promise<string | undefined> {
  const until_ms = Date.now() + WAIT_MS
  const tops = new Set(owned.map(({ path }) => topOf(dirname(path))))
  for (;;) {
    const names = namesIn(around.folder)
    const open = markersAmong(around.folder, names).find((marker) => {
      const { agent, began_ms, process, discards = [] } = marker
      const isOver = Date.now() - began_ms > DISCARD_MS || admits(agent, caller.agent)
      if (isOver || (process && processFact(process) === 'dead')) return false
      return discards.some((top) => tops.has(top))
    })
    if (!open || Date.now() > until_ms) return open?.agent
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/**
 * After a call: what it may have written is as its agent left it. Returns the folders in which it
 * has committed.
 */
export function endCall(context: HookContext, call: HookCall): string[] {
  const { folder } = context.around
  const { agent } = context.caller
  const names = namesIn(folder)
  const own = sha256(agent).slice(0, 16)
  // Of a protocol that does not say which call is over, all are.
  const over = names.filter((name) => {
    if (!name.endsWith(MARKER) || !name.startsWith(own)) return false
    return call.tool_call === undefined || name === markerOf(agent, call)
  })
  const markers = over.flatMap((name) => readMarker(folder, name))
  for (const record of markers.length > 0 ? guardedIn(folder, names) : []) {
    const isWritten = markers.some(({ files }) => files?.includes(record.path) ?? true)
    if (!isWritten || !isTheirs(record, context)) continue
    if (sightOfFile(record.path) !== record.seen) keepGuarded(folder, record, Date.now())
  }
  for (const name of over) rmSync(join(guardFolder(folder), name), { force: true })
  return markers.flatMap(({ commits = [] }) => commits)
}

/** What the caller has and has no call at. */
export function guardedBy(context: HookContext): Guarded[] {
  const { folder } = context.around
  const names = namesIn(folder)
  const markers = markersAmong(folder, names)
  return guardedIn(folder, names).filter((record) => {
    return isTheirs(record, context) && !isAtWork(record, markers)
  })
}

const markersAmong = (folder: string, names: readonly string[]) =>
  names.filter((name) => name.endsWith(MARKER)).flatMap((name) => readMarker(folder, name))

/** Whether a call of its holder that may write it is under way. */
function isAtWork({ holder, path }: Guarded, markers: readonly Marker[]): boolean {
  const now = Date.now()
  return markers.some(({ agent, until_ms, files }) => {
    return until_ms >= now && admits(holder, agent) && (files?.includes(path) ?? true)
  })
}

const readMarker = (folder: string, name: string): Marker[] =>
  attempt(() => [JSON.parse(readFileSync(join(guardFolder(folder), name), 'utf8')) as Marker], [])

/** Reserved files that were changed, and not by a call of their holder, as sentences; told once. */
export async function noticed(context: HookContext): Promise<string[]> {
  const { folder } = context.around
  if (planted('R52 net')) return []
  const names = namesIn(folder)
  const changed = guardedIn(folder, names).filter(
    (record) => record.holder !== '' && isChanged(folder, record),
  )
  if (changed.length === 0) return []
  const markers = markersAmong(folder, names)
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
  if (isAtWork(record, markers)) return true
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
