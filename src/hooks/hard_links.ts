import { join } from 'node:path'
import type { ShownReservation } from '../operations/reservations.ts'
import { quoted, word } from '../core/quote.ts'
import { type Checkout, isHere } from '../machine/checkout.ts'
import { statOf } from '../machine/file_system.ts'
import { type HookContext, isOwn } from './context.ts'
import { INSTEAD } from './wording.ts'

const LISTED_MAX = 1_000

/**
 * A file may have several names (hard links), and a reservation knows one of them. Those of `names`
 * that have another name which another agent reserved are `held`; of the others that have one, a
 * `note` is made: a glob that covers their other names cannot be seen from here.
 */
export async function otherNames(
  { asking, caller }: HookContext,
  checkout: Checkout,
  names: readonly string[],
): Promise<{ held?: string; note?: string }> {
  const many = names.filter((name) => (fileAt(checkout, name)?.nlink ?? 1) > 1)
  const [first] = many
  if (first === undefined) return {}
  const { items } = await asking.ask('reserve.list', { limit: LISTED_MAX }, caller)
  const others = items.filter((item) => {
    const isHereToo = item.checkout !== null && isHere(checkout, item.checkout)
    return isHereToo && !item.shared && !isOwn(caller, item)
  })
  for (const name of many) {
    const file = fileAt(checkout, name)!
    const held = others.find(({ path }) => {
      const other = path !== null && path !== name ? fileAt(checkout, path) : undefined
      return other?.ino === file.ino && other.dev === file.dev
    })
    if (held) return { held: textOf(name, held) }
  }
  return { note: `${word(first)} is a hard link: its other names are changed too, ${UNSEEN}` }
}

const UNSEEN = 'and a reservation that covers one of those would not be noticed'

function fileAt({ top }: Checkout, name: string) {
  const stat = statOf(join(top, name))
  return stat?.isFile() ? stat : undefined
}

function textOf(name: string, { path, holder, expires_at, reason }: ShownReservation): string {
  const why = reason ? `, for: ${quoted(reason)}` : ''
  return (
    `Leasehold: ${word(name)} is the same file as ${word(path ?? '')} (a hard link), reserved by ` +
    `${word(holder)} until ${expires_at}${why}. Next: ${INSTEAD}`
  )
}
