import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { planted } from '../core/planted.ts'
import { word } from '../core/quote.ts'
import { gitPlace, isInside, realpathOf } from '../machine/checkout.ts'
import { statOf } from '../machine/file_system.ts'
import { homeFolder } from '../machine/login.ts'
import { loginState, STATE_NAME } from '../machine/place.ts'
import { isServed } from '../reach/server_file.ts'
import type { Discard, Effects, Target } from './shell/effects.ts'

/**
 * What Leasehold keeps for itself: state folders, of any agent, and what a person approved. A
 * file there decides which programs are started and who holds what, so that an agent which may edit
 * files could otherwise do anything. Told from the path alone: no store is asked.
 */
export function keptAmong(
  effects: Pick<Effects, 'writes' | 'touches' | 'discards'>,
  folder: string,
  env: NodeJS.ProcessEnv,
): { text: string; path: string } | undefined {
  if (planted('R50')) return undefined
  const own = loginState(env)
  const kept = [folder, own, join(own, 'approved')].flatMap((each) => [
    resolve(each),
    realpathOf(each),
  ])
  for (const target of [...effects.writes, ...effects.touches]) {
    const where = keptFolder(target, kept)
    if (where !== undefined) return { path: target.path, text: textOf(target.path, where) }
    if (isGits(target.path, env)) return { path: target.path, text: gitText(target.path) }
  }
  for (const each of effects.discards) {
    const where = cleaned(each, kept)
    if (where !== undefined) return { path: where, text: textOf(where, where, CLEAN) }
  }
  return undefined
}

/**
 * What names programs that git starts, for a repository or for the login: whoever may write there
 * may have anybody start anything.
 */
function isGits(path: string, env: NodeJS.ProcessEnv): boolean {
  const home = attempt(() => homeFolder(env), '/')
  const logins = [
    join(home, '.gitconfig'),
    join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'git'),
  ]
  return [resolve(path), realpathOf(path)].some((way) => {
    if (logins.some((each) => isInside(each, way))) return true
    const parts = way.toLowerCase().split(sep)
    const inside = parts.slice(parts.lastIndexOf('.git') + 1).join('/')
    return parts.includes('.git') && GITS.test(inside)
  })
}

/** In `.git`, and in what it has for submodules and worktrees. */
const GITS =
  /^(?:(?:modules|worktrees)\/.+\/)?(?:config|config\.worktree|info\/attributes|hooks(?:\/.*)?)$/

const gitText = (path: string) =>
  `Leasehold: ${word(path)} is not for agents to change: it names programs that git starts, for ` +
  'your user too. Next: Leave it as it is, and ask your user to set what you need.'
const CLEAN = 'Clean with it left out: git clean -e .leasehold …, or name the paths that should go'

/** The state folder that git would clean away with all else that it does not know. */
function cleaned(
  { dir, what, matching, ignored }: Discard,
  kept: readonly string[],
): string | undefined {
  if (what === 'tracked' || what === 'known') return undefined
  const top = gitPlace(dir)?.top ?? dir
  // A pattern that begins with `:` may begin at the top.
  const from = (matching ?? [':']).some((each) => each.startsWith(':')) ? top : dir
  const inner = [...kept, join(realpathOf(from), STATE_NAME)].find(
    (each) => isInside(realpathOf(from), each) && existsSync(each),
  )
  if (inner === undefined) return undefined
  const isLeft = ({ but }: { but: string[] }) =>
    but.some((each) => each.replaceAll(/^\/|\/$/g, '') === basename(inner))
  return (ignored ? isLeft(ignored) : isIgnored(inner, top)) ? undefined : inner
}

/** As `init` sees to: git leaves such a folder alone, unless it is told to clean that as well. */
function isIgnored(folder: string, top: string): boolean {
  const says = (path: string, pattern: RegExp) =>
    attempt(() => pattern.test(readFileSync(path, 'utf8')), false)
  const named = new RegExp(
    String.raw`^/?${basename(folder).replaceAll('.', String.raw`\.`)}/?\s*$`,
    'm',
  )
  return says(join(folder, '.gitignore'), /^\*\s*$/m) || says(join(top, '.gitignore'), named)
}

/** Whether a name in a checkout leads to a state folder: none is ever committed. */
export const isState = (path: string) => path.split('/').some(isStateName)

/** The state folder (or the like) that a write would reach; undefined: none. */
function keptFolder({ path, removes }: Target, kept: readonly string[]): string | undefined {
  for (const way of new Set([resolve(path), realpathOf(path)])) {
    const own = partInWorktree(way, kept)
    if (own !== undefined && !isState(own)) continue
    const found = stateIn(way) ?? kept.find((folder) => isInside(folder, way))
    if (found !== undefined) return found
    if (removes) {
      const inner = [...kept, join(way, STATE_NAME)].find((each) => isInside(way, each))
      if (inner !== undefined && existsSync(inner)) return inner
    }
  }
  return kept.find((folder) => isLinkedFrom(folder, path))
}

/**
 * Worktrees of runs are in the state folder, and are there for agents to work in: what a path is
 * called inside of one; undefined elsewhere, and for the worktree as a whole.
 */
function partInWorktree(path: string, kept: readonly string[]): string | undefined {
  const parts = path.split(sep)
  const isOf = (i: number) =>
    isStateName(parts[i]!) || kept.includes(parts.slice(0, i + 1).join(sep))
  const at = parts.findIndex((part, i) => i > 0 && part === 'worktrees' && isOf(i - 1))
  return at === -1 || parts.length <= at + 3 ? undefined : parts.slice(at + 3).join('/')
}

/** The part of a path that is a state folder, by its name or by what a server left in it. */
function stateIn(path: string): string | undefined {
  const parts = path.split(sep)
  const at = parts.findIndex(isStateName)
  if (at !== -1) return parts.slice(0, at + 1).join(sep)
  for (let here = path; dirname(here) !== here; here = dirname(here)) {
    if (isServed(here)) return here
  }
  return undefined
}

/** On some disks case, and marks that nobody sees, make no other name. */
const isStateName = (part: string) =>
  part
    .normalize('NFC')
    .replaceAll(/\p{Cf}/gu, '')
    .toLowerCase() === STATE_NAME

/** Whether a file has another name (a hard link) directly in `folder`. */
function isLinkedFrom(folder: string, path: string): boolean {
  const file = statOf(path)
  if (!file?.isFile() || file.nlink < 2 || !existsSync(folder)) return false
  return readdirSync(folder).some((name) => {
    const other = statOf(join(folder, name))
    return other?.ino === file.ino && other.dev === file.dev
  })
}

const textOf = (path: string, folder: string, next = 'Leave it as it is') =>
  `Leasehold: ${word(path)} is not for agents to change: it leads into ${word(folder)}, where ` +
  `Leasehold keeps its state and what a person approved. Next: ${next}; all that you ` +
  'need is done by commands (leasehold --help). A change of config.json is for your user to make ' +
  'and to approve: leasehold config approve'
