import { argument, listed, word } from '../quote.ts'
import type { ForHolder } from '../rows.ts'
import type { View } from '../view.ts'
import type { Reservation } from './overlap.ts'

/** Of one reservation: the oldest make room. The holder reads each of them once. */
const WAITING_MAX = 3

/** Leaves word for the holder of a reservation: the latest of one agent about one path. */
export function leave(view: View, { name }: Reservation, said: ForHolder): void {
  const lease = view.get('lease', name)
  if (!lease?.path) return
  const others = (lease.path.waiting ?? []).filter(({ by, path }) => {
    return by !== said.by || path !== said.path
  })
  const waiting = [...others, said].slice(-WAITING_MAX)
  view.put('lease', { ...lease, path: { ...lease.path, waiting } })
}

/** What waits to be read by the holder of a reservation, and is then gone. */
export function takeWaiting(view: View, { name }: Reservation): ForHolder[] {
  const lease = view.get('lease', name)
  const waiting = lease?.path?.waiting ?? []
  if (!lease?.path || waiting.length === 0) return []
  const { waiting: _, ...path } = lease.path
  view.put('lease', { ...lease, path })
  return waiting
}

/** As the holder reads it: what another wrote stands in quotes; changes by one are one sentence. */
export function sayWaiting(waiting: readonly ForHolder[]): string[] {
  const changed = new Map<string, string[]>()
  const asked: string[] = []
  for (const { by, path, reason } of waiting) {
    if (reason === null) changed.set(by, [...(changed.get(by) ?? []), path])
    else asked.push(`${word(by)} asks for ${word(path)}: ${JSON.stringify(reason)} (their words)`)
  }
  const said = [...changed].map(([by, paths]) => {
    const were = paths.length === 1 ? 'was' : 'were'
    const which = paths.length === 1 ? ` ${argument(paths[0]!)} --restore` : ''
    const back = `to put back what you left: leasehold reserve guard${which}`
    const what = `${listed(paths.map(word))} ${were} changed while ${word(by)} worked, not by you`
    return `${what}; ${back}`
  })
  return [...said, ...asked]
}
