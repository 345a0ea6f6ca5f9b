import { lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { literalGlob } from '../core/paths/glob.ts'
import { Refusal } from '../core/refusal.ts'
import { statOf } from './file_system.ts'
import { CONFIG_FILE, projectFolder, STATE_NAME } from './place.ts'
import { host } from './process.ts'

/**
 * Which checkout a path belongs to, and what the path is called there: the same for every agent,
 * whatever folder it works in. Reads what git wrote down; runs no command and loads no package,
 * because every hook pays for this.
 */
export interface Checkout {
  /** The real path of its top folder, which paths are relative to. */
  top: string
  /** As reservations name it. */
  checkout: string
  /** What it has in common with other worktrees of its repository; null without git. */
  repository: string | null
  /** The project of `config.json` that is kept here, if one is. */
  project: string | undefined
  /** Where git, which may know a checkout inside of this one, has its top; empty: here. */
  inner: string
}

interface Options {
  /** The state folder: whose `config.json` may widen the scope to the repository. */
  folder: string
  /** Whether other machines use the same store: then a path alone says nothing. */
  isShared: boolean
}

/** The checkout around `cwd`: of git, else the folder with our state, else `cwd` itself. */
export function checkoutAt(cwd: string, { folder, isShared }: Options): Checkout {
  const { top, common, inner } = placeOf(cwd, folder)
  const { reservations, projects } = configIn(folder)
  const named = (path: string) => (isShared ? `${host}:${folded(path)}` : folded(path))
  const repository = common === null ? null : named(common)
  const isWide = repository !== null && reservations?.scope === 'repository'
  const places = attempt(() => placesOf(projects, dirname(folder)), [])
  const project = projectAt(realpathOf(resolve(cwd)), common, places)
  return { top, checkout: isWide ? repository : named(top), repository, project, inner }
}

type ProjectPlace = [name: string, path: string]

const placesOf = (projects: Config['projects'], base: string): ProjectPlace[] =>
  Object.entries(projects ?? {}).map(([name, { path }]) => {
    const said = typeof path === 'string' ? path : '.'
    return [name, realpathOf(projectFolder(base, said, home))]
  })

/** The project whose folder is the nearest around `here`, else one of another worktree. */
function projectAt(here: string, common: string | null, places: ProjectPlace[]) {
  const around = places.filter(([, path]) => isInside(path, here))
  const [nearest] = around.toSorted(([, a], [, b]) => b.length - a.length)
  const isBeside = ([, path]: ProjectPlace) => commonFolder(join(path, '.git')) === common
  return (nearest ?? (common === null ? undefined : places.find(isBeside)))?.[0]
}

/**
 * Whether a reservation names this checkout. A server whose store other machines use adds the name
 * of this one, which a client that knows only its address has left out.
 */
export const isHere = ({ checkout }: Checkout, named: string) =>
  named === checkout || named === `${host}:${checkout}`

interface GitPlace {
  top: string
  common: string
}

/** The nearest checkout of git around `dir`, whoever made it. */
export function gitPlace(dir: string): GitPlace | undefined {
  for (let at = realpathOf(resolve(dir)); ; at = dirname(at)) {
    const common = commonFolder(join(at, '.git'))
    if (common !== undefined) return { top: at, common }
    if (dirname(at) === at) return undefined
  }
}

/**
 * A checkout in which Leasehold has a state folder goes on in all that is below it, whatever
 * somebody makes there: with a `.git` of its own, a folder would otherwise be out of sight of all
 * who work around it. A worktree that git itself knows is another matter: its files are its own.
 */
function placeOf(cwd: string, folder: string) {
  const here = realpathOf(resolve(cwd))
  const found = gitPlace(here)
  const inner = found && (isWorktree(found) ? found : (outerPlace(found.top) ?? found))
  if (inner) return { ...inner, inner: relative(inner.top, found.top) }
  const ours = realpathOf(dirname(folder))
  const isOurs = isInside(ours, here) && ours !== realpathOf(home())
  return { top: isOurs ? ours : here, common: null, inner: '' }
}

/** The outermost checkout around `top`, up to a worktree, that has a state folder. */
function outerPlace(top: string): { top: string; common: string | null } | undefined {
  let outer: { top: string; common: string | null } | undefined
  for (let at = top; ; at = dirname(at)) {
    const common = commonFolder(join(at, '.git')) ?? null
    const isEnd = common !== null && isWorktree({ top: at, common })
    if (isGuarded(at) || (isEnd && isGuarded(dirname(common)))) outer = { top: at, common }
    if (isEnd || dirname(at) === at) return outer
  }
}

/** Whether `init` has set this folder up, or it is a checkout with a state folder. */
function isGuarded(at: string): boolean {
  const state = join(at, STATE_NAME)
  if (!statOf(state)?.isDirectory() || at === realpathOf(home())) return false
  return statOf(join(at, '.git')) !== undefined || statOf(join(state, 'init')) !== undefined
}

/** A `.git` file is a linked worktree's only if git has it on its list. */
function isWorktree({ top, common }: GitPlace): boolean {
  const git = join(top, '.git')
  const named = /^gitdir: (.+?)\s*$/m.exec(textOf(git))?.[1]
  if (named === undefined) return false
  const own = realpathOf(resolve(top, named))
  const listed = textOf(join(own, 'gitdir')).trim()
  return dirname(own) === join(common, 'worktrees') && realpathOf(resolve(own, listed)) === git
}

const home = () => process.env['HOME'] ?? '/'

/** The folder that all worktrees share: `.git` itself, or what the file of that name leads to. */
function commonFolder(git: string): string | undefined {
  const stat = statOf(git)
  if (!stat) return undefined
  if (stat.isDirectory()) return realpathOf(git)
  const named = /^gitdir: (.+?)\s*$/m.exec(textOf(git))?.[1]
  if (named === undefined) return undefined
  const own = resolve(dirname(git), named)
  return realpathOf(resolve(own, textOf(join(own, 'commondir')).trim() || '.'))
}

const textOf = (path: string) => attempt(() => readFileSync(path, 'utf8'), '')

interface Config {
  reservations?: { scope?: unknown }
  projects?: Record<string, { path?: unknown }>
}

/** Only this of the configuration: what is wrong with the file is for others to say. */
const configIn = (folder: string): Config =>
  attempt(() => (JSON.parse(textOf(join(folder, CONFIG_FILE))) as Config | null) ?? {}, {})

/**
 * The name of `path`, absolute or relative to `cwd`, inside the checkout; undefined if it lies
 * elsewhere. Symbolic links are followed, because an edit follows them; what does not exist yet is
 * named as if it did.
 */
export function pathIn({ top }: Checkout, cwd: string, path: string): string | undefined {
  const real = realpathOf(resolve(cwd, path))
  if (!isInside(top, real)) return undefined
  return folded(relative(top, real)).split(sep).join('/') || '.'
}

/**
 * The glob that a person or agent means by `said`: relative to `cwd`, and taken for a name where a
 * file of that name exists; a folder means all that is in it. Refuses with `invalid` what leads out
 * of the checkout.
 */
export function globIn(checkout: Checkout, cwd: string, said: string): string {
  const text = sep === '\\' ? said.replaceAll('\\', '/') : said
  const stat = text === '' ? undefined : attempt(() => lstatSync(resolve(cwd, text)), undefined)
  const parts = text.split('/')
  const magic = stat ? -1 : parts.findIndex((part) => /[\\*?[\]{}!+@()]/.test(part))
  const plain = magic === -1 ? parts : parts.slice(0, magic)
  const rest = magic === -1 ? [] : parts.slice(magic)
  const from = plain.join('/') || (text.startsWith('/') ? '/' : '.')
  const name = pathIn(checkout, cwd, from)
  if (name === undefined) throw outside(said, checkout.top)
  const isFolder = stat?.isDirectory() || (rest.length === 0 && text.endsWith('/'))
  const tail = rest.length > 0 ? `/${folded(rest.join('/'))}` : isFolder ? '/' : ''
  return `${literalGlob(name)}${tail}`
}

function outside(path: string, top: string): Refusal {
  return new Refusal('invalid', `${path} is not in this checkout (${top})`, {
    next: 'Only paths of the checkout you are in can be reserved.',
    details: { path, checkout: top },
  })
}

export function isInside(top: string, path: string): boolean {
  const way = relative(top, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && resolve(top, way) === path
}

/** As many links as Linux follows. */
const LINKS_MAX = 40

/** The real path, as far as it exists. A link to what does not exist yet leads there too. */
export function realpathOf(path: string, links = LINKS_MAX): string {
  try {
    return realpathSync.native(path)
  } catch {
    const parent = dirname(path)
    if (parent === path) return path
    const named = join(realpathOf(parent, links), basename(path))
    const to = links > 0 ? linkAt(named) : undefined
    return to === undefined ? named : realpathOf(resolve(dirname(named), to), links - 1)
  }
}

const linkAt = (path: string) => attempt(() => readlinkSync(path), undefined)

/** Where `README` and `readme` are one file, they are one name. */
function folded(path: string): string {
  if (process.platform !== 'darwin' && process.platform !== 'win32') return path
  return path.normalize('NFC').toLowerCase()
}
