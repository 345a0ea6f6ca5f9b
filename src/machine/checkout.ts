import { lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { literalGlob } from '../core/paths/glob.ts'
import { Refusal } from '../core/refusal.ts'
import { statOf } from './file_system.ts'
import { CONFIG_FILE, projectFolder } from './place.ts'
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
}

interface Options {
  /** The state folder: whose `config.json` may widen the scope to the repository. */
  folder: string
  /** Whether other machines use the same store: then a path alone says nothing. */
  isShared: boolean
}

/** The checkout around `cwd`: of git, else the folder with our state, else `cwd` itself. */
export function checkoutAt(cwd: string, { folder, isShared }: Options): Checkout {
  const { top, common } = topOf(cwd, folder)
  const { reservations, projects } = configIn(folder)
  const named = (path: string) => (isShared ? `${host}:${folded(path)}` : folded(path))
  const repository = common === null ? null : named(common)
  const isWide = repository !== null && reservations?.scope === 'repository'
  const places = attempt(() => placesOf(projects, dirname(folder)), [])
  const project = projectAt(realpathOf(resolve(cwd)), common, places)
  return { top, checkout: isWide ? repository : named(top), repository, project }
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

function topOf(cwd: string, folder: string): { top: string; common: string | null } {
  const here = realpathOf(resolve(cwd))
  for (let at = here; ; at = dirname(at)) {
    const common = commonFolder(join(at, '.git'))
    if (common !== undefined) return { top: at, common }
    if (dirname(at) === at) break
  }
  const ours = realpathOf(dirname(folder))
  return { top: isInside(ours, here) && ours !== realpathOf(home()) ? ours : here, common: null }
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
