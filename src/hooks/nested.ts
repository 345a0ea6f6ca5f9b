import { existsSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { word } from '../core/quote.ts'
import { type Checkout, checkoutAt, isInside, realpathOf } from '../machine/checkout.ts'
import { sha256 } from '../machine/digest.ts'
import { guardFiles } from '../machine/guarded.ts'
import { setUpAbove } from '../machine/set_up.ts'
import type { HookContext } from './context.ts'
import type { Effects } from './shell/effects.ts'

const TOLD = '.nested'

/**
 * A checkout inside of a guarded one (`git init src`, a `.git` file) takes nothing out of the
 * guard. Whoever makes one, or is first seen to work in one, is told, and the person with them.
 */
export function nestedNotice(
  { around, env }: HookContext,
  effects: Pick<Effects, 'writes' | 'touches'>,
  worked: readonly Checkout[],
): string | undefined {
  const made = [...effects.writes, ...effects.touches]
    .map(({ path }) => realpathOf(path))
    .filter((path) => basename(path) === '.git' && !existsSync(path))
    .flatMap((path) => {
      const { top } = checkoutAt(dirname(dirname(path)), around)
      const folder = dirname(path)
      return folder !== top && isInside(top, folder) ? [{ top, folder }] : []
    })
  const inner = worked.filter((each) => each.inner !== '' && !isSubmodule(each))
  const found = [...made, ...inner.map(({ top, inner: at }) => ({ top, folder: join(top, at) }))]
  const isGuarded = (folder: string) =>
    isInside(dirname(around.folder), folder) || setUpAbove(env, folder).length > 0
  const fresh = found.filter(({ folder }) => isGuarded(folder) && isNews(around.folder, folder))
  if (fresh.length === 0) return undefined
  const { top, folder } = fresh[0]!
  return (
    `${word(relative(top, folder))} is a git checkout of its own inside of ${word(top)}, which ` +
    'is guarded: its files stay guarded as those of the checkout around it'
  )
}

/** git keeps those below its own folder, on a list that the repository has. */
const isSubmodule = ({ top, inner, repository }: Checkout) =>
  repository !== null && existsSync(join(top, '.git/modules', inner))

/** Told once for each folder, while the state folder can remember it. */
function isNews(state: string, folder: string): boolean {
  const name = `${sha256(folder).slice(0, 16)}${TOLD}`
  const guard = guardFiles(state)
  if (guard.names().includes(name)) return false
  guard.put(name, {})
  return true
}
