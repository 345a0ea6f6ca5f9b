import { signal } from '@preact/signals'
import type { ShownEvent } from '../../client/transport.ts'
import { follow, heard, probe } from '../ask.ts'
import { who } from '../session.ts'
import { isRefusal } from '../../core/refusal.ts'

export type { ShownEvent }

/** What a listener is told: events in order; or that all it knows may be out of date. */
interface Listener {
  events: (events: ShownEvent[]) => void
  reset?: () => void
}

/** Silent: the connection stands, but the server has said nothing for a while. */
export const connection = signal<'connecting' | 'live' | 'silent' | 'lost'>('connecting')
/** A server that says nothing for so long is asked to; one that still says nothing is silent. */
const QUIET_MS = 1_500
const SILENT_MS = 4_000
const WATCH_MS = 500

const listeners = new Set<Listener>()
const RETRY_MS = { first: 250, last: 2_000 }
/** More often than this nobody can read what changes. */
const PACE_MS = 150
/** A page that nobody looks at has no frames; it keeps up this often. */
const HIDDEN_MS = 1_000

let last: string | undefined
let waiting: ShownEvent[] = []
let isDue = false
let told_ms = 0
let watched_ms = performance.now()
let probing: Promise<unknown> | undefined

setInterval(() => {
  const at = performance.now()
  // A page that was hidden or asleep has not listened itself.
  if (document.hidden || at - watched_ms > 4 * WATCH_MS) heard.ms = at
  watched_ms = at
  const isSilent = at - heard.ms > SILENT_MS
  if (at - heard.ms > QUIET_MS) probing ??= probe().finally(() => (probing = undefined))
  if (isSilent && connection.value === 'live') connection.value = 'silent'
  else if (!isSilent && connection.value === 'silent') connection.value = 'live'
}, WATCH_MS)

export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Follows events for as long as somebody is signed in; goes on where it was cut off. */
export async function keepFollowing(): Promise<void> {
  let pause_ms = RETRY_MS.first
  while (who.value) {
    try {
      for await (const { id, what, event } of follow(last)) {
        last = id
        pause_ms = RETRY_MS.first
        connection.value = 'live'
        if (what === 'reset') for (const each of listeners) each.reset?.()
        if (event) take(event)
      }
    } catch (error) {
      if (isRefusal(error, 'unauthorized')) return void (who.value = null)
      connection.value = 'lost'
      await new Promise((resolve) => setTimeout(resolve, pause_ms))
      pause_ms = Math.min(pause_ms * 2, RETRY_MS.last)
    }
  }
}

/** Told together, in a frame, however many came in between; the first of them at once. */
function take(event: ShownEvent): void {
  waiting.push(event)
  if (isDue) return
  isDue = true
  if (document.hidden) setTimeout(tell, HIDDEN_MS)
  else setTimeout(() => requestAnimationFrame(tell), told_ms + PACE_MS - performance.now())
}

function tell(): void {
  const events = waiting
  waiting = []
  isDue = false
  told_ms = performance.now()
  for (const { events: hear } of listeners) hear(events)
}
