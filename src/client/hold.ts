import { Refusal } from '../core/refusal.ts'
import type { ShownLease } from '../operations/locks.ts'
import { newRequestId } from '../machine/digest.ts'
import { keepRenewing } from '../reach/renewing.ts'
import type { Asker } from './asker.ts'
import type { AnswerOf, InputOf } from '../operations/registry.ts'
import { mayPass } from '../reach/patience.ts'
import { takeTurn } from './turns.ts'

const TTL_SECONDS = 60
const WAIT_SECONDS = 30

export interface HoldOptions {
  /** How long the lease lasts unless it is renewed, which happens three times as often. */
  ttl_seconds?: number | undefined
  signal?: AbortSignal | undefined
}

export interface LockOptions extends HoldOptions {
  /** How long to wait for it (default 30); 0 refuses at once. */
  wait_seconds?: number | undefined
  priority?: number | undefined
}

/** Work under a lease. `signal` is aborted when the lease is lost, with the refusal as reason. */
export type Work<T, Under> = (signal: AbortSignal, under: Under) => Promise<T> | T

type ClaimOf = Omit<AnswerOf<'task.claim'>, 'claims'>

/** A task in progress, with its lease and its run. */
export type Claimed = { [K in keyof ClaimOf]: NonNullable<ClaimOf[K]> }

/** A task of an id, or the next one: one at a time. */
export type OneTask = Omit<InputOf<'task.claim'>, 'max'>

/**
 * Runs `work` while holding the lock: waits for it, renews it, and always gives it back.
 * Returns what `work` returns. When the lease was lost, the signal of `work` is aborted, and the
 * refusal is thrown whatever came of it.
 */
export async function withLock<T>(
  asker: Asker,
  name: string,
  options: LockOptions,
  work: Work<T, ShownLease>,
): Promise<T> {
  const { wait_seconds = WAIT_SECONDS, signal } = options
  const until_ms = performance.now() + wait_seconds * 1000
  const { transport, who } = asker
  const place = transport.isLocal ? transport.place : `${transport.place}\n${who.agent}`
  const endTurn = await takeTurn(name, place, wait_seconds * 1000, signal)
  try {
    const left_seconds = Math.max(0, until_ms - performance.now()) / 1000
    const hold = await acquire(asker, name, { ...options, wait_seconds: left_seconds })
    return await hold.during(work, hold.lease, signal, () => hold.release())
  } finally {
    endTurn()
  }
}

async function acquire(asker: Asker, name: string, options: LockOptions): Promise<Hold> {
  const { ttl_seconds = TTL_SECONDS, wait_seconds, priority, signal } = options
  const ask = {
    names: [name],
    ttl_seconds,
    request_id: newRequestId(),
    ...(priority && { priority }),
  }
  const asked_ms = performance.now()
  try {
    const lease = (await asker.call(
      'lock.acquire',
      { ...ask, wait_seconds },
      { signal },
    )) as ShownLease
    return await Hold.since(asker, lease, asked_ms)
  } catch (error) {
    // It may have been granted just before we gave up: then nobody would know of the lease.
    if (signal?.aborted) await undo(asker, ask)
    throw error
  }
}

async function undo(asker: Asker, ask: InputOf<'lock.acquire'>): Promise<void> {
  const how = { retry_seconds: 1 }
  const got = (await asker.call('lock.acquire', ask, how).catch(() => undefined)) as
    | ShownLease
    | undefined
  if (got) await new Hold(asker, got, 0).release(how.retry_seconds).catch(() => undefined)
}

/**
 * Claims a task, runs `work`, and sets the task to `done`, unless `work` has moved it. When `work`
 * throws, the task goes back for others to take. Undefined when nothing was ready.
 */
export async function withTask<T>(
  asker: Asker,
  filter: OneTask,
  { ttl_seconds = TTL_SECONDS, signal }: HoldOptions,
  work: Work<T, Claimed>,
): Promise<{ task: Claimed['task']; result: T } | undefined> {
  const asked_ms = performance.now()
  const claimed = await asker.call('task.claim', { ttl_seconds, ...filter }, { signal })
  if (!claimed.lease) return undefined
  const hold = await Hold.since(asker, claimed.lease, asked_ms)
  let task = claimed.task!
  const finish = async (isDone: boolean) => {
    if (!isDone) return hold.release()
    const { fence } = hold.lease
    task = (await asker.call('task.status', { id: task.id, status: 'done', fence })).task!
  }
  const result = await hold.during(work, claimed as Claimed, signal, finish)
  return { task, result }
}

/** A lease that is kept alive while somebody works under it. */
class Hold {
  private readonly ttl_ms: number
  private renewing: Promise<void> | undefined
  /** What went wrong with the latest renewal that failed. */
  private trouble: unknown
  private lost: Refusal | undefined

  constructor(
    private readonly asker: Asker,
    readonly lease: ShownLease,
    /** When the latest acknowledged grant or renewal was asked for: its TTL counts from then. */
    private asked_ms: number,
  ) {
    this.ttl_ms = lease.ttl_seconds * 1000
  }

  /** A grant that took long to arrive may be old already: then it is renewed before it is used. */
  static async since(asker: Asker, lease: ShownLease, asked_ms: number): Promise<Hold> {
    const hold = new Hold(asker, lease, asked_ms)
    if (performance.now() - asked_ms <= hold.ttl_ms / 3) return hold
    await hold.renew()
    return hold
  }

  /** Runs `work` while renewing, then `finish`, unless somebody passed the lease on meanwhile. */
  async during<T, Under>(
    work: Work<T, Under>,
    under: Under,
    outer: AbortSignal | undefined,
    finish: (isDone: boolean) => Promise<void>,
  ): Promise<T> {
    const loss = new AbortController()
    const done = new AbortController()
    const end = keepRenewing({
      ttl_ms: this.ttl_ms,
      since_ms: this.asked_ms,
      renew: () => (this.renewing = this.renew(done.signal)),
      lose: (_, over) => {
        this.lost = over ?? this.unrenewed()
        done.abort()
        loss.abort(this.lost)
      },
    })
    const stop = async () => {
      end()
      done.abort()
      await this.renewing?.catch(() => undefined)
    }
    const signal = outer ? AbortSignal.any([outer, loss.signal]) : loss.signal
    try {
      const result = await work(signal, under)
      await stop()
      if (this.lost) throw this.lost
      if (this.asker.fences.has(this.lease)) await this.conclude(() => finish(true))
      return result
    } catch (error) {
      await stop()
      if (!this.lost && this.asker.fences.has(this.lease))
        await finish(false).catch(() => undefined)
      if (this.lost && error !== this.lost) this.lost.cause ??= error
      throw this.lost ?? error
    } finally {
      if (this.asker.fences.has(this.lease)) this.asker.fences.forget(this.lease.name)
    }
  }

  async release(retry_seconds?: number): Promise<void> {
    const { name, fence } = this.lease
    await this.asker.call('lock.release', { name, fence }, { retry_seconds })
  }

  /** A server that is away takes nothing from work that ended in time: the lease runs out. */
  private async conclude(finish: () => Promise<void>): Promise<void> {
    const inTime = performance.now() - this.asked_ms < this.ttl_ms
    try {
      await finish()
    } catch (error) {
      if (!(inTime && mayPass(error))) throw error
    }
  }

  private async renew(signal?: AbortSignal): Promise<void> {
    // The work itself has given it back, or passed it on.
    if (!this.asker.fences.has(this.lease)) return
    const { name, fence, ttl_seconds } = this.lease
    const asked_ms = performance.now()
    try {
      await this.asker.call('lock.renew', { name, fence, ttl_seconds }, { signal })
      this.asked_ms = asked_ms
    } catch (error) {
      this.trouble = error
      throw error
    }
  }

  /** Why nothing was acknowledged in time: a server that always said no is quoted. */
  private unrenewed(): Refusal {
    const { trouble } = this
    if (trouble instanceof Refusal && !mayPass(trouble)) return trouble
    const { name, fence } = this.lease
    const refusal = new Refusal('lease_expired', `No renewal of ${name} was acknowledged in time`, {
      next: `Stop this work: the lease may be over. To go on, take ${name} again.`,
      details: { name, reason: 'unacknowledged', last_fence: fence },
    })
    refusal.cause = trouble
    return refusal
  }
}
