import type { Event } from '../../core/event.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import { Alerter } from './alerter.ts'
import { readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { Elected } from '../elected.ts'
import { Role } from '../role.ts'
import { conditionsIn } from './conditions.ts'

const say = (sentence: string) => void process.stderr.write(`leasehold: ${sentence}\n`)

/**
 * Watches a store in a daemon, as `config.json` says. Where several daemons share a store, one of
 * them does, and another takes over when it is gone. `noticed` happened before it could listen.
 * Returns how to stop.
 */
export async function startAlerts(
  store: Store,
  place: Place,
  daemon: Role,
  noticed: Event[],
): Promise<() => Promise<void>> {
  if (place.kind !== 'postgres') {
    const watching = new Watching(store, place, daemon)
    watching.start(noticed)
    return () => watching.stop()
  }
  const role = new Role(store, 'leasehold:alerts', 'alerts')
  const watching = new Watching(store, place, role)
  const missed = new MissedAlerts()
  const forget = store.onCommit((events) => missed.hear(events))
  missed.hear(noticed)
  const duty = {
    begin: () => Promise.resolve(watching.start(missed.take())),
    end: () => watching.stop(),
  }
  const elected = new Elected(store, role, duty, say)
  await elected.startOrStandBy()
  return async () => {
    forget()
    await elected.stop()
  }
}

class Watching {
  private alerter: Alerter | undefined
  private unwatch = () => {}

  constructor(
    private readonly store: Store,
    private readonly place: Place,
    private readonly role: Role,
  ) {}

  start(noticed: Event[]): void {
    const folder = folderOf(this.place)
    const { env } = process
    const { alerts } = readConfig(folder, env)
    const alerter = new Alerter(this.store, { role: this.role, alerts, env, say })
    this.alerter = alerter
    this.unwatch = watchConfig(folder, env, {
      changed: (config) => alerter.reload(config.alerts),
      // The reader of the rest of the file says what is wrong with it.
      failed: () => undefined,
    })
    alerter.start(noticed)
  }

  async stop(): Promise<void> {
    this.unwatch()
    await this.alerter?.stop()
  }
}

const EVERY_RULE = { lock_expired: true, agent_lost: true, deadlock: true, recover_seconds: 0 }
/** Longer than a process that is gone can still have the role. */
const KEPT_MS = 120_000
const KEPT_MAX = 1_000

/**
 * Conditions that no alert was raised for yet. The daemon that has the role of alerts may be
 * paused, or cut off, until its lease is over: what happens meanwhile is sent by the next one. An
 * alert that is raised or cleared leaves an event, so all who stand by know what was done.
 */
class MissedAlerts {
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
