import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import type { Operation } from '../operations/operation.ts'
import type { RegisteredName } from '../operations/registry.ts'
import { type Checkout, checkoutAt, globIn, pathIn } from '../machine/checkout.ts'
import { folderOf, type Place } from '../stores/open.ts'
import { io } from './io.ts'

type Input = Record<string, unknown>

/** Those that take globs; the others take paths that mean themselves. */
const OF_GLOBS: ReadonlySet<string> = new Set<RegisteredName>(['reserve.add', 'reserve.release'])
const LIST: RegisteredName = 'reserve.list'
const RELEASE: RegisteredName = 'reserve.release'

/**
 * What an agent or a person says of paths, in the folder it works in, becomes what all of them call
 * the same: the checkout is filled in, and paths are named from its top. A checkout that the caller
 * names is taken as it is. A door that cannot know the folder leaves this out.
 */
export function placePaths({ name, input: fields }: Operation, said: Input, place: Place): Input {
  const isAsked = 'checkout' in fields && name !== LIST && said['checkout'] === undefined
  if (!isAsked) return said
  const cwd = io().cwd()
  const at = checkoutAt(cwd, { folder: folderOf(place), isShared: place.kind === 'postgres' })
  const input: Input = { ...said, checkout: at.checkout }
  if ('repository' in fields) input['repository'] ??= at.repository
  // What is released may have been reserved before the project had a name.
  if (name !== RELEASE && at.project !== undefined) input['project'] ??= at.project
  const { paths } = said
  if (Array.isArray(paths)) {
    input['paths'] = paths.map((path) => {
      if (typeof path !== 'string') return path as unknown
      return OF_GLOBS.has(name) ? globIn(at, cwd, path) : pathFrom(at, cwd, path)
    })
  }
  return input
}

function pathFrom(at: Checkout, cwd: string, path: string): string {
  const found = pathIn(at, cwd, path)
  if (found === undefined) {
    throw new Refusal('invalid', `${path} is not in this checkout (${at.top})`, {
      next: 'Ask about it from the checkout that it is in.',
      details: { path, checkout: at.top },
    })
  }
  const isFolder = statSync(resolve(cwd, path), { throwIfNoEntry: false })?.isDirectory()
  return isFolder || path.endsWith('/') ? `${found}/` : found
}
