import type { Event } from '../../core/event.ts'
import { conditionsIn } from './conditions.ts'

const EVERY_RULE = { lock_expired: true, agent_lost: true, recover_seconds: 0 }
/** Longer than a role can be in the hands of somebody who is not there any more. */
const KEPT_MS = 120_000
const KEPT_MAX = 1_000

/**
 * What somebody should be told of and nobody has raised yet. Whoever has the role of alerts may be
 * paused, or cut off, until its lease is over: what happens meanwhile is told by the next one. An
 * alert that is raised or cleared leaves an event, so all who stand by know what was done.
 */
export class MissedAlerts {
  private readonly kept = new Map<string, { event: Event; heard_ms: number }>()

  hear(events: Event[]): void {
    const heard_ms = performance.now()
    for (const event of events) {
      const { raised, cleared } = conditionsIn([event], EVERY_RULE)
      const { type, data } = event
      if (type === 'alert.raised' || type === 'alert.cleared') cleared.push(data['id'])
      for (const key of [...cleared, ...raised.map((each) => each.key)]) this.kept.delete(key)
      for (const { key } of raised) this.kept.set(key, { event, heard_ms })
    }
    // They are in the order in which they were heard.
    for (const [key, each] of this.kept) {
      if (this.kept.size <= KEPT_MAX && each.heard_ms > heard_ms - KEPT_MS) break
      this.kept.delete(key)
    }
  }

  take(): Event[] {
    const since_ms = performance.now() - KEPT_MS
    const fresh = [...this.kept.values()].filter(({ heard_ms }) => heard_ms > since_ms)
    this.kept.clear()
    return fresh.map(({ event }) => event)
  }
}
