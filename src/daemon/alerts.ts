import { Refusal } from '../core/refusal.ts'
import type { Event } from '../core/view.ts'
import { folderOf, type Place } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'
import { Alerter } from './alerter.ts'
import { readConfig } from './config.ts'
import { watchConfig } from './config_watch.ts'
import { Role } from './role.ts'

const ENDED = /^lease\.(?:released|expired|died|force_released)$/

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
  const role = place.kind === 'postgres' ? new Role(store, 'leasehold:alerts', 'alerts') : daemon
  const watching = new Watching(store, place, role)
  if (role === daemon) watching.start(noticed)
  else await watching.standBy(noticed)
  return async () => {
    await watching.stop()
    if (role !== daemon) await role.release()
  }
}

class Watching {
  private readonly store: Store
  private readonly place: Place
  private readonly role: Role
  private alerter: Alerter | undefined
  private unwatch = () => {}
  private forget = () => {}

  constructor(store: Store, place: Place, role: Role) {
    this.store = store
    this.place = place
    this.role = role
  }

  start(noticed: Event[] = []): void {
    const folder = folderOf(this.place)
    const { env } = process
    const say = (sentence: string) => void process.stderr.write(`leasehold: ${sentence}\n`)
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

  /** Takes the role now, or when whoever has it lets go. */
  async standBy(noticed: Event[]): Promise<void> {
    let taken = false
    const attempt = async (before: Event[] = []) => {
      if (taken) return
      try {
        await this.role.take()
      } catch (error) {
        if (error instanceof Refusal) return
        throw error
      }
      taken = true
      this.role.keep(() => undefined)
      this.start(before)
    }
    this.forget = this.store.onCommit((events) => {
      const freed = events.some(({ lock, type }) => lock === this.role.name && ENDED.test(type))
      if (freed) void attempt().catch(() => undefined)
    })
    await attempt(noticed)
  }

  async stop(): Promise<void> {
    this.forget()
    this.unwatch()
    await this.alerter?.stop()
  }
}
