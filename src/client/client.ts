import { operations } from '../operations/registry.ts'
import type { ShownLease } from '../operations/locks.ts'
import type { Asker, Calls, How } from './asker.ts'
import { Fences } from './fences.ts'
import {
  type Claimed,
  type HoldOptions,
  type LockOptions,
  type OneTask,
  withLock,
  withTask,
  type Work,
} from './hold.ts'
import { EventStream, type StreamOptions } from './stream.ts'

/** Which tasks may be claimed next, and for how long at first. */
export type Filter = Omit<OneTask, 'id' | 'process'>

interface Helpers {
  /**
   * Runs `work` while holding a lock: waits for it, renews it, and always gives it back. `work`
   * gets a signal that is aborted when the lease is lost; then the refusal is thrown.
   */
  withLock<T>(name: string, work: Work<T, ShownLease>): Promise<T>
  withLock<T>(name: string, options: LockOptions, work: Work<T, ShownLease>): Promise<T>
  /** Claims the best ready task; undefined when nothing is ready. */
  claimNext(filter?: Filter, how?: How): Promise<Claimed | undefined>
  /** Claims a task (of an id, or the next one), keeps it while `work` runs, and completes it. */
  withTask<T>(
    ask: OneTask,
    work: Work<T, Claimed>,
    options?: HoldOptions,
  ): Promise<{ task: Claimed['task']; result: T } | undefined>
  /** What happens from now on, or behind `after`; mends its connection by itself. */
  events(options?: StreamOptions): EventStream
  /** A client for another agent over the same connections: one nested under this, or any. */
  as(agent: string): Client
  /** Lets go of connections or the store. Leases stay: release them, or they run out. */
  close(): Promise<void>
}

/** Every operation of the registry as a method, and helpers around them. */
export type Client = Calls & Helpers

type Ask = (input?: Record<string, unknown>, how?: How) => Promise<unknown>

/** Makes the client from the registry: an operation that is added there is a method here. */
export function clientFor(asker: Asker): Client {
  const calls: Record<string, Record<string, Ask>> = {}
  for (const operation of operations) {
    const [noun, verb] = operation.name.split('.') as [string, string]
    calls[noun] ??= {}
    calls[noun][verb] = (input = {}, how = {}) => asker.ask(operation, input, how)
  }
  const streams = new Set<EventStream>()
  const helpers: Helpers = {
    withLock: <T>(
      name: string,
      first: LockOptions | Work<T, ShownLease>,
      second?: Work<T, ShownLease>,
    ) => {
      return typeof first === 'function'
        ? withLock(asker, name, {}, first)
        : withLock(asker, name, first, second!)
    },
    claimNext: async (filter = {}, how = {}) => {
      const claim = await asker.call('task.claim', filter, how)
      return claim.task ? (claim as Claimed) : undefined
    },
    withTask: (ask, work, options = {}) => withTask(asker, ask, options, work),
    events: (options = {}) => {
      const stream = new EventStream(asker, options)
      streams.add(stream)
      return stream
    },
    as: (agent) => clientFor(asker.as(agent, new Fences())),
    close: async () => {
      for (const stream of streams) stream.close()
      await asker.transport.close()
    },
  }
  return Object.assign(calls as unknown as Calls, helpers)
}
