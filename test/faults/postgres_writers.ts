import { Refusal } from '../../src/core/refusal.ts'
import { call } from '../../src/operations/call.ts'
import { create } from '../../src/operations/tasks.ts'
import { machine } from '../../src/machine/machine.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf } from '../support/helpers.ts'

/** Opens a store of its own, as another process would. */
export function openAt(url: string, make = PostgresBackend): Store {
  return new Store(new make({ address: addressOf(url), busy_timeout_ms: 5_000 }), machine)
}

/** Writers that add tasks one by one, and ask again under the same request id when in doubt. */
export class Writers {
  readonly acknowledged: string[] = []
  /** When the newest answer came. */
  answered_ms = 0
  readonly said = new Map<string, number>()
  private readonly stores: Store[]
  private running = true
  private readonly done: Promise<void>[]

  constructor(url: string, count: number) {
    this.stores = Array.from({ length: count }, () => openAt(url))
    this.done = this.stores.map((store, i) => this.write(store, `writer-${i}`))
  }

  private async write(store: Store, agent: string): Promise<void> {
    for (let n = 0; this.running; n += 1) {
      const title = `${agent}/${n}`
      while (!(await this.added(store, agent, title)));
      this.acknowledged.push(title)
      this.answered_ms = performance.now()
    }
  }

  private async added(store: Store, agent: string, title: string): Promise<boolean> {
    try {
      await call(store, create, { title, request_id: title }, callerOf(agent))
      return true
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'unavailable') throw error
      const key = error.details['outcome'] === 'unknown' ? 'unknown' : 'unavailable'
      this.said.set(key, (this.said.get(key) ?? 0) + 1)
      return false
    }
  }

  async stop(): Promise<void> {
    this.running = false
    await Promise.all(this.done)
    await Promise.all(this.stores.map((store) => store.close()))
  }
}

/** How often each title was added. */
export async function countsAt(url: string): Promise<Map<string, number>> {
  const store = openAt(url)
  const titles = await store.read((view) => [...view.scan('tasks', '')].map((task) => task.title))
  await store.close()
  const counts = new Map<string, number>()
  for (const title of titles) counts.set(title, (counts.get(title) ?? 0) + 1)
  return counts
}
