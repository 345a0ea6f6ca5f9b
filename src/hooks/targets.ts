import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { type Checkout, checkoutAt, pathIn, realpathOf } from '../machine/checkout.ts'
import { pathsInDiff, pathsInEnvelope } from './patches.ts'
import type { Patch, Target } from './shell/effects.ts'

/** Names of one checkout, as reservations spell them; a folder ends in a slash. */
export interface Named {
  checkout: Checkout
  names: string[]
}

export interface Surroundings {
  cwd: string
  folder: string
  isShared: boolean
}

const FOUND_MAX = 500
const PATCH_BYTES_MAX = 1024 * 1024

export const isFolder = (path: string) => attempt(() => statSync(path).isDirectory(), false)

/**
 * What is written, sorted by the checkout that it is in: an agent may write in a worktree beside
 * its own. What is in none, and what git and Leasehold keep for themselves, is left out.
 */
export function namedTargets(targets: readonly Target[], around: Surroundings): Named[] {
  const found = new Map<string, { checkout: Checkout; names: Set<string> }>()
  const known = new Map<string, Checkout>()
  const at = (dir: string) => {
    const checkout = known.get(dir) ?? checkoutAt(dir, around)
    known.set(dir, checkout)
    return checkout
  }
  for (const { path, kind } of targets) {
    // An edit follows links, also those that lead to another checkout.
    const nearest = at(nearestFolder(dirname(realpathOf(path))))
    const checkout = nearest.repository === null ? at(around.cwd) : nearest
    const name = pathIn(checkout, around.cwd, path)
    if (name === undefined || isKept(name)) continue
    // A worktree of a run is in there, and is there to be worked in.
    if (isBelow(path, around.folder) && !isBelow(checkout.top, around.folder)) continue
    const entry = found.get(checkout.checkout) ?? { checkout, names: new Set<string>() }
    if (kind === 'tree') entry.names.add(`${name}/`)
    else if (name !== '.') entry.names.add(name)
    found.set(checkout.checkout, entry)
  }
  return [...found.values()].map(({ checkout, names }) => ({ checkout, names: [...names] }))
}

const isKept = (name: string) => name === '.git' || name.startsWith('.git/')

function isBelow(path: string, folder: string): boolean {
  return !relative(folder, resolve(path)).startsWith('..')
}

export function nearestFolder(path: string): string {
  let at = path
  while (!isFolder(at) && dirname(at) !== at) at = dirname(at)
  return at
}

/** Files that the shell would find; where it finds none, it would write none. */
export function expand(target: Target): Target[] {
  if (target.kind !== 'glob') return [target]
  const parts = target.path.split('/').slice(1)
  let found = ['/']
  for (const part of parts) {
    found = /[*?[]/.test(part)
      ? found.flatMap((folder) => matches(folder, part)).slice(0, FOUND_MAX)
      : found.map((folder) => join(folder, part))
  }
  const { removes = false } = target
  return found.map((path) => ({ path, kind: isFolder(path) ? 'tree' : 'file', removes }))
}

function matches(folder: string, part: string): string[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  const pattern = patternOf(part)
  const isShown = (name: string) => !name.startsWith('.') || part.startsWith('.')
  return names
    .filter((name) => isShown(name) && pattern.test(name))
    .map((name) => join(folder, name))
}

function patternOf(part: string): RegExp {
  const source = part.replaceAll(
    /\*+|\?|\[([!^]?)([^\]]+)\]|[\\^$.*+?()[\]{}|]/g,
    (all, not, set) => {
      if (all.startsWith('*')) return '.*'
      if (all === '?') return '.'
      if (set === undefined) return `\\${all}`
      return `[${not ? '^' : ''}${String(set).replaceAll(/[\\\]^]/g, String.raw`\$&`)}]`
    },
  )
  return attempt(() => new RegExp(`^${source}$`, 'su'), /^.*$/s)
}

/** The files that a patch changes. One that cannot be read changes none that we know of. */
export function patchTargets({ dir, file, text, strip, format }: Patch): Target[] {
  const content = text ?? (file === undefined ? '' : readPatch(file))
  const paths = format === 'diff' ? pathsInDiff(content, strip) : pathsInEnvelope(content)
  return paths.map((path) => ({ path: resolve(dir, path), kind: 'file' }))
}

function readPatch(file: string): string {
  try {
    const stat = statSync(file)
    return stat.isFile() && stat.size <= PATCH_BYTES_MAX ? readFileSync(file, 'utf8') : ''
  } catch {
    return ''
  }
}
