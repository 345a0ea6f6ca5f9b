import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { planted } from '../core/planted.ts'
import { word } from '../core/quote.ts'
import { realpathOf } from '../machine/checkout.ts'
import { sha256 } from '../machine/digest.ts'
import { LocalFiles } from '../machine/local_files.ts'
import type { HookContext } from './context.ts'
import type { HookCall } from './protocol.ts'

/**
 * What a conversation last saw of each file. A conversation that goes on after hours may write a
 * whole file from memory, over what others have written since: that is refused once. Kept beside
 * the sessions, past the end of the process: the conversation may be resumed.
 */
type Seen = Record<string, string>

const seenFiles = (state: string) => new LocalFiles(state, 'seen')
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
  const known = seenFiles(around.folder).read<Seen>(nameOf(call), {})
  const now = contentsOf(call, whole)
  const changed = Object.keys(now).find((path) => known[path] && known[path] !== now[path])
  if (changed === undefined) return undefined
  // Once: the agent was told, and may know better.
  remember(around.folder, call, now)
  return { path: changed, text: changedText(changed) }
}

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

/** Where it cannot be kept, the guard of reservations is all there is. */
function remember(state: string, call: HookCall, seen: Seen): void {
  if (call.session === undefined) return
  const files = seenFiles(state)
  const known = files.read<Seen>(nameOf(call), {})
  const isNews = Object.entries(seen).some(([path, content]) => known[path] !== content)
  if (!isNews) return
  for (const path of Object.keys(seen)) delete known[path]
  const latest = Object.entries({ ...known, ...seen }).slice(-FILES_MAX)
  files.put(nameOf(call), Object.fromEntries(latest), true)
  attempt(() => forgetOldest(files), undefined)
}

function forgetOldest(files: LocalFiles): void {
  const names = files.names()
  if (names.length <= CONVERSATIONS_MAX) return
  const aged = names.map((name) => ({ name, ms: statSync(join(files.folder, name)).mtimeMs }))
  const oldest = aged.toSorted((a, b) => a.ms - b.ms).slice(0, names.length - CONVERSATIONS_MAX)
  for (const { name } of oldest) files.drop(name)
}
