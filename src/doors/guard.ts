import { join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { isPattern } from '../core/paths/glob_syntax.ts'
import { globSteps, literalGlob, overlaps, parseGlob } from '../core/paths/glob.ts'
import { checkoutAt } from '../machine/checkout.ts'
import { gitNow } from '../machine/git_quiet.ts'
import { keepGuarded } from '../machine/guarded.ts'
import type { RegisteredName } from '../operations/registry.ts'
import type { GrantedPaths } from '../operations/reservations.ts'
import { folderOf, type Place } from '../stores/open.ts'
import { io } from './io.ts'

/** Of one glob: more of its files have no copy, and changes of those are not noticed. */
const FILES_MAX = 200
const GIT_MS = 2_000
const ADD: RegisteredName = 'reserve.add'

/**
 * What was just reserved here is kept as it is now, so that a change by another can be noticed and
 * taken back. Of a glob, the files that git knows or would add, up to a bound. A door that is not
 * on the machine of the files leaves this out.
 */
export function keepReserved(name: string, result: unknown, place: Place): void {
  if (name !== ADD) return
  const folder = folderOf(place)
  const at = checkoutAt(io().cwd(), { folder, isShared: place.kind === 'postgres' })
  for (const item of (result as GrantedPaths).items) {
    const { path: glob, checkout, project, holder, pid = null } = item
    if (checkout !== at.checkout || item.shared) continue
    const files = isPattern(glob) ? filesOf(at.top, glob) : [glob.replaceAll(/\\(.)/g, '$1')]
    for (const file of files) {
      const owned = { path: join(at.top, file), name: file, checkout, project, holder, pid }
      keepGuarded(folder, owned, 0)
    }
  }
}

function filesOf(top: string, text: string): string[] {
  const glob = parseGlob(text)
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const ask = () => gitNow(top, args, { timeout_ms: GIT_MS, isList: true }) ?? ''
  const known = attempt(ask, '')
  const found: string[] = []
  for (const file of known.split('\0')) {
    if (file === '' || !file.startsWith(glob.base)) continue
    if (overlaps(glob, parseGlob(literalGlob(file)), globSteps())) found.push(file)
    if (found.length === FILES_MAX) break
  }
  return found
}
