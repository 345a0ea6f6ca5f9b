import { word } from '../quote.ts'
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

/** As the holder reads it: what another wrote stands in quotes. */
export function sayWaiting({ by, path, reason }: ForHolder): string {
  const what = word(path)
  if (reason === null) return `${what} was changed while ${word(by)} worked, not by you`
  return `${word(by)} asks for ${what}: ${JSON.stringify(reason)} (their words)`
}
