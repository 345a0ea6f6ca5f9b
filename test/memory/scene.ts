import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { NoteKeeper } from '../../src/daemon/embedding/keeper.ts'
import type { Provider } from '../../src/daemon/embedding/provider.ts'
import { call } from '../../src/operations/call.ts'
import { operationNamed } from '../../src/operations/registry.ts'
import { openStore, type Place, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import type { Json } from '../doors/serving.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { until } from '../support/processes.ts'

export const STORES = ['sqlite', 'postgres'] as const

/** A store with real time and real processes, and somebody who asks it. */
export class Notes {
  readonly folder = temporaryFolder()
  readonly place: Place
  readonly store: Store
  /** What was said to a person. */
  readonly said: string[] = []
  private readonly opened: Store[] = []

  /** `opened`: a store that is kept elsewhere. */
  constructor(kind: (typeof STORES)[number], opened?: Store) {
    const env = { LEASEHOLD_DIR: this.folder }
    const store = kind === 'postgres' ? { LEASEHOLD_STORE: postgresUrl(this.folder) } : {}
    this.place = placeOf({ ...env, ...store }, this.folder)
    this.store = opened ?? this.beside()
    if (opened) this.opened.push(opened)
    onTestFinished(async () => {
      for (const each of this.opened) await each.close()
    })
  }

  /** The same store as another process sees it. */
  beside(): Store {
    const store = openStore(this.place)
    this.opened.push(store)
    return store
  }

  configure(config: object): void {
    writeFileSync(join(this.folder, 'config.json'), JSON.stringify(config))
  }

  ask(name: string, input: object, agent = 'ada', store = this.store): Promise<Json> {
    const caller = callerOf(agent, { admin: true })
    return call(store, operationNamed.get(name)!, input as Record<string, unknown>, caller)
  }

  put(key: string, content: string, more: object = {}, agent = 'ada'): Promise<Json> {
    return this.ask('memory.put', { key, content, ...more }, agent)
  }

  /** Keys of what was found. */
  async find(query: string, more: object = {}): Promise<string[]> {
    const { items } = await this.ask('memory.search', { query, ...more })
    return items.map(({ key }: { key: string }) => key)
  }

  /** Somebody who does what is behind notes, until the test ends. */
  async keeper(open?: () => Promise<Provider>, store = this.store): Promise<NoteKeeper> {
    const say = (sentence: string) => void this.said.push(sentence)
    const env = { LEASEHOLD_TRUST_CONFIG: 'yes' }
    const keeper = new NoteKeeper(store, { place: this.place, env, say, ...(open && { open }) })
    await store.follow(50)
    await keeper.start()
    onTestFinished(() => keeper.stop())
    return keeper
  }

  status(): Promise<Json> {
    return this.ask('memory.status', {})
  }

  /** Until nothing waits any more. Some of what is done leaves no event, so it is looked for. */
  async settled(isSettled = ({ waiting }: Json) => waiting === 0): Promise<Json> {
    let status: Json
    const look = async () => isSettled((status = await this.status()))
    await until('all is done behind notes', look)
    return status
  }
}
