import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { admits } from '../core/caller.ts'
import { planted } from '../core/planted.ts'
import { argument, listed, word } from '../core/quote.ts'
import { isRefusal } from '../core/refusal.ts'
import { gitPlace } from '../machine/checkout.ts'
import { sha256 } from '../machine/digest.ts'
import { statOf } from '../machine/file_system.ts'
import { gitList, statusOf } from '../machine/git.ts'
import { saveFiles } from '../machine/git_save.ts'
import { type Guarded, guardedIn } from '../machine/guarded.ts'
import { LocalFiles } from '../machine/local_files.ts'
import type { HookContext } from './context.ts'
import type { HookCall } from './protocol.ts'
import type { Effects } from './shell/effects.ts'
import type { Named } from './targets.ts'

/*
 * Nobody's work is thrown away. What a command discards or writes over is saved first, unless all
 * of it is known to be the caller's own: another agent's whose turn has ended, who was killed or
 * paused past its TTL, and a person's, of whom nobody knows. Whose a file is: its holder's, and
 * theirs who left it changed when they gave it back (a list for each agent, beside the sessions).
 */

const leftFiles = (state: string) => new LocalFiles(state, 'left')
const FILES_MAX = 500
const TOLD_MAX = 20
const LIST = '.json'
const WORD = '.told'
/** Since the hook began, as in git_facts.ts. */
const UNTIL_MS = 3_500
/** An ignored file that is larger is made again, as a rule. */
const IGNORED_BYTES_MAX = 1024 ** 2

interface Left {
  agent: string
  /** When the agent last wrote each, by full path; the latest at the end. */
  wrote_ms: Record<string, number>
}

const nameOf = (agent: string, kind: string) => `${sha256(agent).slice(0, 32)}${kind}`

/** Their holders give these files back as they are: what is in them stays theirs. */
export function noteLeft(folder: string, records: readonly Guarded[]): void {
  const holders = new Set(records.map(({ holder }) => holder).filter((each) => each !== ''))
  for (const agent of holders) {
    const name = nameOf(agent, LIST)
    const theirs = records.filter(({ holder }) => holder === agent)
    const known = leftFiles(folder).read<Left | null>(name, null)
    const all = new Map(Object.entries(known?.wrote_ms ?? {}))
    for (const { path, wrote_ms } of theirs) {
      all.delete(path)
      all.set(path, wrote_ms)
    }
    const wrote_ms = Object.fromEntries([...all].slice(-FILES_MAX))
    // Where it cannot be kept, more is saved than need be.
    leftFiles(folder).put(name, { agent, wrote_ms }, true)
  }
}

/** Who has a file, or left it changed after `committed_ms`. */
function authorsIn(folder: string): (path: string, committed_ms?: number) => string[] {
  const files = leftFiles(folder)
  const names = files.names().filter((name) => name.endsWith(LIST))
  const left = names.flatMap((name) => files.read<Left | null>(name, null) ?? [])
  const held = guardedIn(folder)
  return (path, committed_ms = 0) => [
    ...held.flatMap((each) => (each.path === path && each.holder !== '' ? [each.holder] : [])),
    ...left.flatMap(({ agent, wrote_ms }) => {
      return (wrote_ms[path] ?? 0) > committed_ms ? [agent] : []
    }),
  ]
}

/** Of one checkout what a call throws away, as patterns of git. */
interface Lost {
  dir: string
  patterns: string[]
  tracked: boolean
  untracked: boolean
  ignored: boolean
}

function lostBy(call: HookCall, effects: Effects, named: readonly Named[]): Lost[] {
  const whole = new Set((call.whole ?? []).map((each) => resolve(call.cwd, each)))
  const all = { tracked: true, untracked: true, ignored: true }
  const written = named.flatMap(({ checkout, names }): Lost[] => {
    const paths = names.map((name) => join(checkout.top, name))
    const isLost = (path: string) => call.command !== undefined || whole.has(path)
    const there = paths.filter((path) => isLost(path) && existsSync(path))
    const patterns = there.map((path) => `:(literal)${path}`)
    return patterns.length > 0 ? [{ dir: checkout.top, patterns, ...all }] : []
  })
  const discarded = effects.discards.map(({ dir, what, matching = [':/'], ignored }): Lost => {
    const untracked = what === 'untracked' || what === 'all'
    return {
      ...{ dir, patterns: matching, tracked: what !== 'untracked' },
      ...{ untracked, ignored: ignored !== undefined },
    }
  })
  return [...discarded, ...written]
}

/** What differs from the last commit, relative to the top; ignored files only if they are small. */
async function uncommitted(top: string, lost: Lost, timeout_ms: number): Promise<string[]> {
  const which = ['--untracked-files=all', '--ignored=matching', '--', ...lost.patterns]
  const entries = await statusOf(lost.dir, { timeout_ms }, which)
  return entries.flatMap(({ state, path }) => {
    if (path.endsWith('/')) return []
    if (state === '??') return lost.untracked ? [path] : []
    if (state !== '!!') return lost.tracked ? [path] : []
    const bytes = statOf(join(top, path))?.size ?? 0
    return lost.ignored && bytes <= IGNORED_BYTES_MAX ? [path] : []
  })
}

/**
 * Saves what is not the caller's own before a call throws it away, and says where; those whose it
 * was are told at their next call. `deny`: it could not be saved, or config says to refuse.
 */
export async function saveDiscarded(
  context: HookContext,
  call: HookCall,
  effects: Effects,
  named: readonly Named[],
): Promise<{ said?: string; deny?: string; paths: string[] }> {
  const { around, caller, settings } = context
  const said: string[] = []
  if (planted('R61')) return { paths: [] }
  let authors: ReturnType<typeof authorsIn> | undefined
  for (const lost of lostBy(call, effects, named)) {
    const top = gitPlace(lost.dir)?.top
    if (top === undefined) continue
    const timeout_ms = Math.max(1, UNTIL_MS - process.uptime() * 1000)
    authors ??= authorsIn(around.folder)
    const known = authors
    const committed = new Map<string, number>()
    const whose = (path: string) => known(join(top, path), committed.get(path))
    const isOwn = (path: string) => {
      const all = whose(path)
      return all.length > 0 && all.every((each) => admits(each, caller.agent))
    }
    let paths: string[] = []
    try {
      // Where git has nothing to say (no commit, no such pattern) it will not run for the agent.
      paths = await uncommitted(top, lost, timeout_ms).catch(noneIfRefused)
      const isOthers = (agent: string) => !admits(agent, caller.agent)
      for (const path of paths.filter((each) => known(join(top, each)).some(isOthers))) {
        committed.set(path, await committedAt(top, path, timeout_ms))
      }
      paths = paths.filter((path) => !isOwn(path))
      if (paths.length === 0) continue
      const theirs = namesOf(paths)
      if (settings.discard === 'refuse') return { deny: refusedText(theirs), paths }
      const message = `Saved before ${caller.agent} threw it away`
      const ref = await saveFiles(top, paths, message, timeout_ms)
      said.push(savedText(theirs, ref, paths))
      tellAuthors(context, whose, paths, ref)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      return { deny: unsavedText(namesOf(paths), why), paths }
    }
  }
  return { ...(said.length > 0 && { said: said.join('; ') }), paths: [] }
}

/** Rounded down: what was written in the second of a commit may have come after it. */
async function committedAt(top: string, path: string, timeout_ms: number): Promise<number> {
  const args = ['log', '-1', '--format=%ct', '--', `:(top,literal)${path}`]
  const [seconds = '0'] = await gitList(top, args, { timeout_ms }).catch(noneIfRefused)
  return Number(seconds) * 1000
}

/** A look that took too long says nothing of what is there. */
function noneIfRefused(error: unknown): string[] {
  if (isRefusal(error, 'illegal_move')) return []
  throw error
}

function tellAuthors(
  { around, caller }: HookContext,
  whose: (path: string) => string[],
  paths: string[],
  ref: string,
): void {
  const byAuthor = new Map<string, string[]>()
  for (const path of paths) {
    for (const author of whose(path)) {
      if (admits(author, caller.agent)) continue
      byAuthor.set(author, [...(byAuthor.get(author) ?? []), path])
    }
  }
  for (const [author, lost] of byAuthor) {
    const name = nameOf(author, WORD)
    const files = leftFiles(around.folder)
    const words = files.read<string[]>(name, [])
    words.push(toldText(caller.agent, namesOf(lost), ref, lost))
    files.put(name, words.slice(-TOLD_MAX), true)
  }
}

/** What others threw away of the caller's, since it was told last. */
export function wordsFor({ around, caller }: HookContext): string[] {
  const name = nameOf(caller.agent, WORD)
  const files = leftFiles(around.folder)
  const words = files.read<string[]>(name, [])
  if (words.length > 0) files.drop(name)
  return words
}

const namesOf = (paths: readonly string[]) => listed(paths.map((path) => word(path)))

const backText = (ref: string, paths: readonly string[]) =>
  `git restore --source=${ref} -- ${paths.length === 1 ? argument(paths[0]!) : 'FILE…'}`

const savedText = (names: string, ref: string, paths: readonly string[]) =>
  `this discards uncommitted changes that are not known to be yours (${names}): they were saved ` +
  `first, as ${ref}. To take them back: ${backText(ref, paths)}`

const toldText = (agent: string, names: string, ref: string, paths: readonly string[]) =>
  `${word(agent)} has discarded changes of yours that were not committed, in ${names}. They were ` +
  `saved as ${ref}. To take them back: ${backText(ref, paths)}`

const refusedText = (names: string) =>
  `Leasehold: this would discard uncommitted changes that are not known to be yours: ${names}. ` +
  'Next: Name only files of your own, or ask your user (hooks.discard in config.json).'

const unsavedText = (names: string, why: string) =>
  `Leasehold: this would discard uncommitted changes that are not known to be yours (${names}), ` +
  `and they could not be saved: ${why}. Next: Name only files of your own, or tell your user.`
