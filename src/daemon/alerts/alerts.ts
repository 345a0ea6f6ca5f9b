import { folderOf, type Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import { Alerter } from './alerter.ts'
import { readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { Elected } from '../elected.ts'
import { Role } from '../role.ts'

const say = (sentence: string) => void process.stderr.write(`leasehold: ${sentence}\n`)

/**
 * Watches a store in a daemon, as `config.json` says. Where several daemons share a store, one of
 * them does, and another takes over when it is gone. Returns how to stop.
 */
export async function startAlerts(
  store: Store,
  place: Place,
  daemon: Role,
): Promise<() => Promise<void>> {
  if (place.kind !== 'postgres') return watch(store, place, daemon)
  const role = new Role(store, 'leasehold:alerts', 'alerts')
  let end = async () => {}
  const duty = {
    begin: async () => void (end = watch(store, place, role)),
    end: () => end(),
  }
  const elected = new Elected(store, role, duty, say)
  await elected.startOrStandBy()
  return () => elected.stop()
}

function watch(store: Store, place: Place, role: Role): () => Promise<void> {
  const folder = folderOf(place)
  const { env } = process
  const { alerts } = readConfig(folder, env)
  const alerter = new Alerter(store, { role, alerts, env, say })
  const unwatch = watchConfig(folder, env, {
    changed: (config) => alerter.reload(config.alerts),
    // The reader of the rest of the file says what is wrong with it.
    failed: () => undefined,
  })
  alerter.start()
  return async () => {
    unwatch()
    await alerter.stop()
  }
}
