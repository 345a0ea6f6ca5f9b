import { join } from 'node:path'
import { literalGlob } from '../core/paths/glob.ts'
import { Refusal } from '../core/refusal.ts'
import { gitPlace } from '../machine/checkout.ts'
import type { Guarded } from '../machine/guarded.ts'
import type { ShownReservation } from '../operations/reservations.ts'
import { EDITING, type HookContext, isOwn } from './context.ts'
import { asCommitted } from './git_facts.ts'
import { endGuard, guardedBy } from './net.ts'
import type { Verdict } from './protocol.ts'

const LISTED_MAX = 1_000
const PAGES_MAX = 10
const PATHS_AT_ONCE = 100

/**
 * Between two turns an agent may wait for a person for hours: what its edits reserved is given
 * back, and the next edit reserves again. What it asked for itself it keeps for as long as it said.
 */
export async function endTurn(context: Asked): Promise<Verdict> {
  await giveBack(context, () => true)
  return {}
}

type Asked = Pick<HookContext, 'asking' | 'caller'>

/**
 * After commits in `dirs`: what the caller's edits reserved and is in a commit as it stands is
 * given back at once, because nobody has work in it now. Not a file that a call is at.
 */
export async function giveBackCommitted(context: HookContext, dirs: string[]): Promise<void> {
  const done = new Set<string>()
  for (const top of new Set(dirs.flatMap((dir) => gitPlace(dir)?.top ?? []))) {
    const records = guardedBy(context).filter(({ path }) => path.startsWith(join(top, '/')))
    const inside = (record: Guarded) => record.path.slice(join(top, '/').length)
    const clean = new Set(records.length > 0 ? asCommitted(top, records.map(inside)) : [])
    for (const each of records) if (clean.has(inside(each))) done.add(keyOf(each))
  }
  if (done.size === 0) return
  await giveBack(context, ({ checkout, path }) => done.has(JSON.stringify([checkout, path])))
}

const keyOf = ({ checkout, name }: Guarded) => JSON.stringify([checkout, literalGlob(name)])

async function giveBack(
  { asking, caller }: Asked,
  isOver: (item: ShownReservation) => boolean,
): Promise<void> {
  const items = await listed(asking, caller)
  const places = new Map<string, ShownReservation[]>()
  for (const item of items) {
    if (!isOwn(caller, item) || item.reason !== EDITING || !isOver(item)) continue
    const key = JSON.stringify([item.checkout, item.project])
    places.set(key, [...(places.get(key) ?? []), item])
  }
  for (const [first, ...rest] of places.values()) {
    const paths = [first!, ...rest].map(({ path }) => path)
    for (let at = 0; at < paths.length; at += PATHS_AT_ONCE) {
      const input = {
        paths: paths.slice(at, at + PATHS_AT_ONCE),
        checkout: first!.checkout,
        ...(first!.project !== null && { project: first!.project }),
        process: caller.process,
      }
      await asking.ask('reserve.release', input, caller).catch(ignoreLost)
    }
    const { checkout } = first!
    endGuard(asking.folder, (each) => {
      const isTheirs = each.holder === caller.agent || !caller.given
      return isTheirs && each.checkout === checkout && paths.includes(literalGlob(each.name))
    })
  }
}

/** Every reservation there is, page by page, within reason. */
async function listed(
  asking: HookContext['asking'],
  caller: HookContext['caller'],
): Promise<ShownReservation[]> {
  const found: ShownReservation[] = []
  let after: string | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const input = { limit: LISTED_MAX, ...(after !== undefined && { after }) }
    const { items, next } = await asking.ask('reserve.list', input, caller)
    found.push(...items)
    if (next === null) break
    after = next
  }
  return found
}

/** Over since it was listed, or of another process with our id: then it is not ours to release. */
function ignoreLost(error: unknown): void {
  if (!(error instanceof Refusal) || error.code === 'unavailable') throw error
}
