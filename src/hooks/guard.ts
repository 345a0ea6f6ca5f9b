import { join } from 'node:path'
import { literalGlob } from '../core/paths/glob.ts'
import { quoted, word } from '../core/quote.ts'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { type Checkout, checkoutAt, isHere } from '../machine/checkout.ts'
import { statOf } from '../machine/file_system.ts'
import { keepGuarded, type Owned } from '../machine/guarded.ts'
import type { InputOf } from '../operations/registry.ts'
import type { ShownReservation } from '../operations/reservations.ts'
import { letPast } from './bypass.ts'
import {
  conflictsIn,
  EDITING,
  type HookContext,
  isOwn,
  placeIn,
  reservationsIn,
} from './context.ts'
import { committedPaths, discardedPaths, unpushedPaths } from './git_facts.ts'
import { saveDiscarded, wordsFor } from './discarded.ts'
import type { HookCall, Verdict } from './protocol.ts'
import { nestedNotice } from './nested.ts'
import { beginCall, endCall, noticed } from './net.ts'
import type { Effects } from './shell/effects.ts'
import { type Named, namedTargets } from './targets.ts'
import { conflictText, denialOf, INSTEAD, nameText, unknownText } from './wording.ts'

/** A command is given a little longer than its timeout: it takes time to be stopped. */
const MARGIN_SECONDS = 60
const KEEP_SECONDS_MAX = 24 * 3600
const NAMES_AT_ONCE = 100

/** Before a tool runs: may it write what it is about to write? */
export async function guardTool(
  context: HookContext,
  call: HookCall,
  effects: Effects,
): Promise<Verdict> {
  const { mode } = context.settings
  const unknown = call.unknown === undefined ? undefined : unknownText(call.unknown)
  if (unknown !== undefined && mode === 'strict') return letPast(context, unknown, [call.cwd])
  const blocked = await guardGit(context, effects)
  if (blocked && mode !== 'warn') return letPast(context, blocked.text, blocked.names)
  const named = namedTargets(effects.writes, context.around)
  const touched = await touchAll(context, named, call)
  if (touched.deny !== undefined) return touched
  const saved = await saveDiscarded(context, call, effects, named)
  if (saved.deny !== undefined) return letPast(context, saved.deny, saved.paths)
  const strange = await strangeChanges(context, call)
  beginCall(context, call, touched.owned)
  const found = nestedNotice(
    context,
    effects,
    named.map(({ checkout }) => checkout),
  )
  const nested = found && `Leasehold: ${found}.`
  const notice = [touched.notice, nested].filter((each) => each !== undefined).join('\n')
  const discards = saved.said && `Leasehold: ${saved.said}.`
  const lines = [blocked?.text, touched.context, unknown, nested, discards, strange]
  return spoken(lines, notice || undefined)
}

const spoken = (lines: (string | undefined)[], notice?: string): Verdict => {
  const context = lines.filter(Boolean).join('\n')
  return { ...(context !== '' && { context }), ...(notice !== undefined && { notice }) }
}

/** What the second net holds, for an agent that will read it. */
async function strangeChanges(context: HookContext, { hears }: HookCall) {
  // A change that nobody can be asked about now is noticed again at the next call.
  const said = hears ? await noticed(context).catch(() => []) : []
  if (hears) said.push(...wordsFor(context))
  return said.length === 0 ? undefined : `Leasehold: ${said.join('. ')}.`
}

/** A sign of life: all that the agent holds lives on. Says what is in the way of none. */
export async function giveSign(
  context: HookContext,
  call: HookCall,
  { writes }: Effects,
): Promise<Verdict> {
  endCall(context, call)
  const touched = await touchAll(context, namedTargets(writes, context.around), call)
  if (touched.deny !== undefined) return touched
  // Of an edit that is told of afterwards only: its agent has the file now, as it is.
  for (const each of touched.owned) keepGuarded(context.around.folder, each, Date.now())
  return spoken([touched.context, await strangeChanges(context, call)], touched.notice)
}

/** What came of a touch, and the files that are the caller's to write now. */
interface Touched extends Verdict {
  owned: Owned[]
}

async function touchAll(context: HookContext, named: Named[], call: HookCall): Promise<Touched> {
  const { settings, around } = context
  const here = { checkout: checkoutAt(around.cwd, around), names: [] }
  const told: string[] = []
  const reserved: ShownReservation[] = []
  for (const { checkout, names } of named.length > 0 ? named : [here]) {
    for (let at = 0; at === 0 || at < names.length; at += NAMES_AT_ONCE) {
      const some = names.slice(at, at + NAMES_AT_ONCE)
      const no = await touchSome(context, checkout, some, call, { told, reserved })
      if (no === undefined) continue
      if (settings.mode !== 'warn') return { ...(await letPast(context, no, some)), owned: [] }
      told.push(no)
    }
  }
  const owned = named.flatMap((each) => ownedIn(context, each, reserved))
  return { owned, ...(told.length > 0 && { context: `Leasehold: ${told.join('; ')}` }) }
}

/** Files among `names`. Where edits are only warned about, those that were free. */
function ownedIn(
  { caller, settings }: HookContext,
  { checkout, names }: Named,
  reserved: readonly ShownReservation[],
): Owned[] {
  const { top, checkout: place, project = null } = checkout
  const found = new Map(reserved.map((each) => [each.path, each]))
  return names.flatMap((name) => {
    const mine = found.get(literalGlob(name))
    if (name.endsWith('/') || (settings.mode === 'warn' && !mine)) return []
    const holder = mine?.holder ?? reserved[0]?.holder ?? caller.agent
    const pid = caller.process?.pid ?? null
    return [{ path: join(top, name), name, checkout: place, project, holder, pid }]
  })
}

/** What touches have said so far. */
interface Heard {
  told: string[]
  reserved: ShownReservation[]
}

/** Why `names` must not be written, if so. Adds to `heard` what the agent should know. */
async function touchSome(
  context: HookContext,
  checkout: Checkout,
  names: string[],
  call: HookCall,
  heard: Heard,
): Promise<string | undefined> {
  try {
    await touch(context, checkout, names, call, 'auto', heard)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    // One name that cannot be reserved must not leave the others without a guard.
    if (error.code === 'invalid' && names.length > 0) {
      if (names.length === 1) return nameText(names[0]!, error)
      const found: (string | undefined)[] = []
      for (const name of names) {
        found.push(await touchSome(context, checkout, [name], call, heard))
      }
      return found.find((each) => each !== undefined)
    }
    if (!isNo(error)) throw error
    if (context.settings.mode !== 'warn') return denialOf(error)
    await touch(context, checkout, names, call, 'warn', heard)
  }
  // After the touch: of two agents that come at once, one at least sees the other.
  const { held, note } = await otherNames(context, checkout, names)
  if (note !== undefined) heard.told.push(note)
  return held
}

/**
 * Refusals that say something about the path, or that the caller has used up what its token may
 * have: filling that would be a way past the guard. Any other says something about the store.
 */
const isNo = ({ code }: Refusal) =>
  code === 'held' || code === 'lease_expired' || code === 'rate_limited' || code === 'too_large'

async function touch(
  { asking, caller, settings }: HookContext,
  checkout: Checkout,
  paths: string[],
  { timeout_ms, hears }: HookCall,
  mode: 'auto' | 'warn',
  { told, reserved }: Heard,
): Promise<void> {
  const { ttl_seconds } = settings
  const keep = timeout_ms === undefined ? 0 : Math.ceil(timeout_ms / 1000) + MARGIN_SECONDS
  const input: InputOf<'reserve.touch'> = {
    paths,
    ...placeIn(checkout),
    repository: checkout.repository,
    mode: settings.mode === 'strict' ? 'strict' : mode,
    ttl_seconds,
    ...(keep > ttl_seconds && { keep_seconds: Math.min(keep, KEEP_SECONDS_MAX) }),
    reason: EDITING,
    ...(hears && { hears }),
    process: caller.process,
  }
  const said = await asking.ask('reserve.touch', input, caller).catch((error: unknown) => {
    // A daemon that runs since before an upgrade does not know the word: it guards all the same.
    if (!isRefusal(error, 'invalid') || !error.message.includes('hears: no such')) throw error
    const { hears: _, ...known } = input
    return asking.ask('reserve.touch', known, caller)
  })
  const words = said.words as string[] | undefined
  told.push(...said.warnings, ...(words ?? []))
  reserved.push(...said.reserved)
}

/** What git would commit, push or throw away, against what others have reserved. */
async function guardGit(
  context: HookContext,
  effects: Effects,
): Promise<{ text: string; names: string[] } | undefined> {
  const acts = [
    ...effects.commits.map((commit) => {
      const what = 'this commit would contain'
      return { dir: commit.dir, what, next: COMMIT, of: () => committedPaths(commit) }
    }),
    ...effects.pushes.map((dir) => {
      const what = 'this push would publish'
      return { dir, what, next: PUSH, of: () => unpushedPaths(dir, 'HEAD') }
    }),
    ...effects.discards.map((each) => {
      const what = 'this would undo changes to'
      return { dir: each.dir, what, next: DISCARD, of: () => discardedPaths(each) }
    }),
  ]
  for (const { dir, what, next, of } of acts) {
    const conflicts = await conflictsIn(context, checkoutAt(dir, context.around), of())
    if (conflicts.length === 0) continue
    const text = `${conflictText(what, conflicts)}. Next: ${next}${WAIT}`
    return { text, names: conflicts.map(({ path }) => path) }
  }
  return undefined
}

const COMMIT = 'Commit only your own files (git commit -m MESSAGE -- FILE…), or '
const DISCARD = 'Name only files of your own, or '
const PUSH = 'Push a branch without these commits, or '
const WAIT = 'wait until they are free.'

/**
 * A file may have several names (hard links), and a reservation knows one of them. Those of `names`
 * that have another name which another agent reserved are `held`; of the others that have one, a
 * `note` is made: a glob that covers their other names cannot be seen from here.
 */
async function otherNames(
  context: HookContext,
  checkout: Checkout,
  names: readonly string[],
): Promise<{ held?: string; note?: string }> {
  const many = names.filter((name) => (fileAt(checkout, name)?.nlink ?? 1) > 1)
  const [first] = many
  if (first === undefined) return {}
  const items = await reservationsIn(context)
  const others = items.filter((item) => {
    const isHereToo = item.checkout !== null && isHere(checkout, item.checkout)
    return isHereToo && !item.shared && !isOwn(context.caller, item)
  })
  for (const name of many) {
    const file = fileAt(checkout, name)!
    const held = others.find(({ path }) => {
      const other = path !== null && path !== name ? fileAt(checkout, path) : undefined
      return other?.ino === file.ino && other.dev === file.dev
    })
    if (held) return { held: linkText(name, held) }
  }
  return { note: `${word(first)} is a hard link: its other names are changed too, ${UNSEEN}` }
}

const UNSEEN = 'and a reservation that covers one of those would not be noticed'

function fileAt({ top }: Checkout, name: string) {
  const stat = statOf(join(top, name))
  return stat?.isFile() ? stat : undefined
}

function linkText(name: string, { path, holder, expires_at, reason }: ShownReservation): string {
  const why = reason ? `, for: ${quoted(reason)}` : ''
  return (
    `Leasehold: ${word(name)} is the same file as ${word(path ?? '')} (a hard link), reserved by ` +
    `${word(holder)} until ${expires_at}${why}. Next: ${INSTEAD}`
  )
}
