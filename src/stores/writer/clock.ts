import type { Head } from '../port.ts'
import type { Machine } from '../../machine/machine.ts'

export interface Instant {
  now: number
  wall: number
  at: string
}

/**
 * Store time on one machine: the monotonic clock plus an offset that was chosen when this boot was
 * first seen. It reads like the wall clock of that moment, never goes back, and is the same for all
 * processes of the boot; a wall clock that is stepped changes nothing.
 */
export function instantOf(head: Head, machine: Machine): { instant: Instant; head: Head } {
  if (head.clock_ms !== undefined) return instantOfStore(head, head.clock_ms)
  const wall = machine.wallMs()
  const mono = machine.monotonicMs()
  const fresh_ms = Math.max(wall, head.last_ms + 1) - Math.floor(mono)
  const kept_ms = head.boot === machine.boot ? head.offset_ms : fresh_ms
  // The clock of one boot never goes back, unless a virtual machine was put back to a snapshot that
  // is older than its store. Time then goes on from the newest commit: waiting for the clock to
  // catch up would keep every lease alive for so long.
  const behind_ms = Math.max(0, head.last_ms - Math.floor(mono + kept_ms))
  const offset_ms = kept_ms + behind_ms
  const now = Math.floor(mono + offset_ms)
  const instant = { now, wall, at: new Date(wall).toISOString() }
  return { instant, head: { ...head, boot: machine.boot, offset_ms, last_ms: now } }
}

/**
 * A store with a clock of its own serves many machines, which agree on nothing else. It knows of no
 * boots, and is held to never going back.
 */
function instantOfStore(head: Head, clock_ms: number): { instant: Instant; head: Head } {
  const now = Math.max(Math.floor(clock_ms), head.last_ms)
  const instant = { now, wall: now, at: new Date(now).toISOString() }
  return { instant, head: { ...head, last_ms: now } }
}
