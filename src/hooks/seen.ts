import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { planted } from '../core/planted.ts'
import { word } from '../core/quote.ts'
import { realpathOf } from '../machine/checkout.ts'
import { sha256 } from '../machine/digest.ts'
import { writePrivate } from '../machine/private_file.ts'
import type { HookContext } from './context.ts'
import type { HookCall } from './protocol.ts'

/**
 * What a conversation last saw of each file. A conversation that goes on after hours may write a
 * whole file from memory, over what others have written since: that is refused once. Kept beside
 * the sessions, past the end of the process: the conversation may be resumed.
 */
type Seen = Record<string, string>

const FOLDER = 'seen'
/** Conversations, and files of each, that are remembered: the latest. */
const CONVERSATIONS_MAX = 200
const FILES_MAX = 500
/** A larger file is known by its size and time. */
const BYTES_MAX = 4 * 1024 * 1024

/** After a tool: these files were read or written, and are now known as they are. */
export function noteSeen({ around }: HookContext, call: HookCall): void {
  const { saw = [] } = call
  if (saw.length > 0) remember(around.folder, call, contentsOf(call, saw))
}

/** Why a whole file must not be written yet: the conversation has not seen what is in it now. */
export function unseenChange(
  { around }: HookContext,
  call: HookCall,
): { text: string; path: string } | undefined {
  const { whole = [] } = call
  if (whole.length === 0 || planted('S9 seen')) return undefined
  const known = read(around.folder, call)
  const now = contentsOf(call, whole)
  const changed = Object.keys(now).find((path) => known[path] && known[path] !== now[path])
  if (changed === undefined) return undefined
  // Once: the agent was told, and may know better.
  remember(around.folder, call, now)
  return { path: changed, text: changedText(changed) }
}

/** Of what is said in full once, and then in a line: whether this conversation has read it. */
export function isTold({ around }: HookContext, call: HookCall, what: string): boolean {
  const key = `${TOLD}${what}`
  if (read(around.folder, call)[key] !== undefined) return true
  remember(around.folder, call, { [key]: what })
  return false
}

/** A conversation that begins, or was made shorter, is told all of it again. */
export function forgetTold({ around }: HookContext, call: HookCall): void {
  const entries = Object.entries(read(around.folder, call))
  const rest = entries.filter(([key]) => !key.startsWith(TOLD))
  if (rest.length < entries.length) put(around.folder, call, Object.fromEntries(rest))
}

const TOLD = 'told '

const changedText = (path: string) =>
  `Leasehold: ${word(path)} was changed since you last read or wrote it, and this would write ` +
  'over that. Next: Read it again, then write it with both changes.'

function contentsOf({ cwd }: HookCall, files: readonly string[]): Seen {
  const paths = files.map((file) => realpathOf(resolve(cwd, file)))
  return Object.fromEntries(paths.flatMap((path) => contentOf(path).map((each) => [path, each])))
}

/** A digest of what is in a file; nothing where there is no file. */
const contentOf = (path: string): string[] =>
  attempt(() => {
    const { size, mtimeMs } = statSync(path)
    return [size > BYTES_MAX ? `${size} ${mtimeMs}` : sha256(readFileSync(path))]
  }, [])

const nameOf = ({ session = '', subagent = '' }: HookCall) =>
  `${sha256(`${session}\n${subagent}`).slice(0, 32)}.json`

const read = (folder: string, call: HookCall): Seen =>
  attempt(() => JSON.parse(readFileSync(join(folder, FOLDER, nameOf(call)), 'utf8')) as Seen, {})

/** Where it cannot be kept, the guard of reservations is all there is. */
function remember(folder: string, call: HookCall, seen: Seen): void {
  if (call.session === undefined) return
  const known = read(folder, call)
  const isNews = Object.entries(seen).some(([path, content]) => known[path] !== content)
  if (!isNews) return
  for (const path of Object.keys(seen)) delete known[path]
  const latest = Object.entries({ ...known, ...seen }).slice(-FILES_MAX)
  put(folder, call, Object.fromEntries(latest))
}

function put(folder: string, call: HookCall, seen: Seen): void {
  attempt(() => {
    // Only in a state folder that is there: with a token of a server elsewhere there may be none.
    if (!statSync(folder).isDirectory()) return
    const place = join(folder, FOLDER)
    mkdirSync(place, { mode: 0o700, recursive: true })
    writePrivate(place, nameOf(call), JSON.stringify(seen))
    forgetOldest(place)
  }, undefined)
}

function forgetOldest(place: string): void {
  const names = readdirSync(place)
  if (names.length <= CONVERSATIONS_MAX) return
  const aged = names.map((name) => ({ name, ms: statSync(join(place, name)).mtimeMs }))
  const oldest = aged.toSorted((a, b) => a.ms - b.ms).slice(0, names.length - CONVERSATIONS_MAX)
  for (const { name } of oldest) rmSync(join(place, name), { force: true })
}
