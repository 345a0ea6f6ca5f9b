import { asciiOf, type Glob } from './glob.ts'
import type { PathTerms } from '../rows.ts'

/** Where paths are: of which checkout, of which project. */
export interface Where {
  /** Empty where none is named. */
  project: string
  /** Null: the whole project, whichever checkout. */
  checkout: string | null
  repository: string | null
}

/** Bounds of what is part of an index: some databases refuse long keys. */
const NAME_MAX = 300
const KEY_MAX = 200

/** What a lease says of the paths it is of. */
export function termsOf(
  glob: Glob,
  where: Where,
  how: { shared: boolean; reason: string | null },
): PathTerms {
  const { project, checkout, repository } = where
  return {
    project,
    checkout,
    repository,
    glob: glob.text,
    ...how,
    scope: scopeOf(where),
    family: repository === null ? null : repositoryId(repository),
    base: glob.base,
  }
}

/** Where it counts, as a key. Two places may have the same one: `collide` decides. */
export function scopeOf({ project, checkout }: Where): string {
  return shortened(asciiOf(checkout === null ? `project:${project}` : `at:${checkout}`), KEY_MAX)
}

export const repositoryId = (repository: string) => shortened(asciiOf(repository), KEY_MAX)

/** Whether two can collide: both in one checkout, or one of them of the whole project. */
export function collide(a: Where, b: Where): boolean {
  if (a.checkout !== null && b.checkout !== null) return a.checkout === b.checkout
  return a.project === b.project
}

/**
 * The lock of a glob: `path:web:src/**`. Holders who share it, and a subagent that has what its
 * parent has too, each have a lock of their own.
 */
export function pathLock({ project, checkout }: Where, glob: string, holder?: string): string {
  const whose = holder === undefined ? '' : `@${holder}`
  return shortened(`path:${checkout ?? project}:${glob}${whose}`, NAME_MAX)
}

/** A text that is too long keeps its beginning; the rest is told apart by its digest. */
function shortened(text: string, max: number): string {
  if (text.length <= max) return text
  const tail = digest(text, 1) + digest(text, 2) + digest(text, 3)
  const head = text.slice(0, max - tail.length - 1)
  // Not through the middle of a character.
  return `${head.replace(/[\ud800-\udbff]$/, '')}#${tail}`
}

/**
 * 32 bits that depend on every character. Two texts with the same digest would be one lock: the
 * second asker is then refused, and nothing worse happens.
 */
function digest(text: string, seed: number): string {
  let hash = Math.imul(seed, 0x9e3779b1)
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x85ebca6b)
    hash ^= hash >>> 15
  }
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, '0')
}
