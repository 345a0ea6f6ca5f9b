import type { Event } from '../../core/event.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import { Alerter } from './alerter.ts'
import { readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { Elected } from '../elected.ts'
import { MissedAlerts } from './missed.ts'
import { Role } from '../role.ts'

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
  private readonly store: Store
  private readonly place: Place
  private readonly role: Role
  private alerter: Alerter | undefined
  private unwatch = () => {}

  constructor(store: Store, place: Place, role: Role) {
    this.store = store
    this.place = place
    this.role = role
  }

  start(noticed: Event[]): void {
    const folder = folderOf(this.place)
    const { env } = process
    const { alerts } = readConfig(folder, env)
    const alerter = new Alerter(this.store, { role: this.role, alerts, env, say })
    this.alerter = alerter
    this.unwatch = watchConfig(folder, env, {
      changed: (config) => alerter.reload(config.alerts),
      // Whoever reads the rest of the file says what is wrong with it.
      failed: () => undefined,
    })
    alerter.start(noticed)
  }

  async stop(): Promise<void> {
    this.unwatch()
    await this.alerter?.stop()
  }
}
