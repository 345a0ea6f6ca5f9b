import { admits } from '../../src/core/caller.ts'
import { type Event, type EventOf, factsOf } from '../../src/core/event.ts'
import { mustHold } from './broken.ts'

/** What is known of a lock from the outside: from events, answers and the time that has passed. */
interface KnownLock {
  fence: number
  holder: string
  ended: boolean
  /** At least and at most: they differ when the reply to a renewal was lost. */
  ttl_min: number
  ttl_max: number
  /** In uptime: lives at least and at most until then. */
  until_min: number
  until_max: number
  /** Whether no renewal goes beyond a certain time, and until when it lives at most. */
  bound?: number
}

type Given = Pick<KnownLock, 'fence' | 'holder' | 'ttl_min' | 'ttl_max'>

/** A write that was made under a lease and accepted. */
export interface Accepted {
  lock: string
  fence: number | undefined
  agent: string
  what: string
}

/** An ask for several locks, and what came of it. */
export interface AskedFor {
  agent: string
  names: string[]
  granted: number | 'unknown'
}

const ENDINGS = new Set([
  'lease.released',
  'lease.force_released',
  'lease.expired',
  'lease.died',
  'lease.cancelled',
  'lease.overdue',
])

/**
 * Watches a store from the outside and says when it breaks a promise. It shares no code with the
 * rules: it knows only what was asked, what was answered, what was recorded, and how time passed.
 */
export class History {
  readonly locks = new Map<string, KnownLock>()
  private before = new Map<string, KnownLock>()
  private grants: { lock: string; agent: string; asked: boolean }[] = []
  private fence_max = 0
  private readonly ended = new Set<string>()
  private readonly started = new Set<number>()

  /** Remembers how things stood before a step, whose writes are judged by it. */
  beginStep(): void {
    this.before = new Map(this.locks)
    this.grants = []
  }

  follow(events: Event[], uptime_ms: number): void {
    for (const event of events) {
      if (event.type === 'lease.handed_off') this.handedOff(event, uptime_ms)
      else if (event.type === 'lease.granted' || event.type === 'task.claimed') {
        this.granted(event, uptime_ms)
      } else if (ENDINGS.has(event.type) || factsOf(event).released === true) {
        this.endedBy(event, uptime_ms)
      } else if (event.type === 'run.started') this.startedBy(event)
      else if (event.type === 'run.ended') this.runEnded(event)
    }
  }

  /** S12: a command is let go once per fence. */
  private startedBy(event: Event): void {
    const fence = factsOf(event).fence!
    mustHold('S12', !this.started.has(fence), () => `${event.lock} was started twice as ${fence}`)
    this.started.add(fence)
  }

  /** The lease ends with the run, also where the task had been moved before. */
  private runEnded(event: Event): void {
    const last = this.locks.get(event.lock!)
    if (!last || last.ended || last.fence !== factsOf(event).fence!) return
    this.locks.set(event.lock!, { ...last, ended: true })
  }

  /** The time of a run is up at `until`, in uptime. */
  bounded(lock: string, fence: number, until: number): void {
    const last = this.locks.get(lock)
    if (!last || last.ended || last.fence !== fence) return
    const until_min = Math.min(last.until_min, until)
    const until_max = Math.min(last.until_max, until)
    this.locks.set(lock, { ...last, until_min, until_max, bound: until })
  }

  private granted(event: Event, uptime_ms: number): void {
    const lock = event.lock!
    const fence = factsOf(event).fence!
    const last = this.locks.get(lock)
    // A holder that starts its task keeps its lease: that is a claim, and no new grant.
    if (last && !last.ended && last.fence === fence && event.type === 'task.claimed') return
    mustHold('S1', !last || last.ended || last.holder === event.agent, () => {
      return `${lock} was granted to ${event.agent} while ${last?.holder} held it`
    })
    const ttl_ms = factsOf(event).ttl_seconds! * 1000
    this.grant(lock, { holder: event.agent, fence, ttl_min: ttl_ms, ttl_max: ttl_ms }, uptime_ms)
    this.grants.push({ lock, agent: event.agent, asked: event.type === 'lease.granted' })
  }

  private handedOff(event: EventOf<'lease.handed_off'>, uptime_ms: number): void {
    const lock = event.lock!
    const last = this.locks.get(lock)
    const from = event.data.from_fence
    mustHold('S2', !!last && !last.ended && last.fence === from, () => {
      return `${lock} was handed off under fence ${from}, which was not in force`
    })
    const to = event.data.to
    const { ttl_min, ttl_max } = last!
    const given = { holder: to, fence: factsOf(event).fence!, ttl_min, ttl_max }
    this.grant(lock, given, uptime_ms)
    this.grants.push({ lock, agent: to, asked: false })
  }

  private grant(lock: string, given: Given, now: number): void {
    const { fence, ttl_min, ttl_max } = given
    mustHold('S3', fence > this.fence_max, () => {
      return `${lock} got fence ${fence} after ${this.fence_max} had been given`
    })
    this.fence_max = fence
    const until = { until_min: now + ttl_min, until_max: now + ttl_max }
    this.locks.set(lock, { ...given, ...until, ended: false })
  }

  private endedBy(event: Event, uptime_ms: number): void {
    const lock = event.lock!
    const last = this.locks.get(lock)
    const fence = factsOf(event).fence!
    // What ends with a write was let through by that; all else is the store's own doing.
    const promise = event.type.startsWith('lease.') ? 'S1' : 'S2'
    mustHold(promise, !!last && !last.ended && last.fence === fence, () => {
      return `${event.type} of ${lock} under fence ${fence}, which was not in force`
    })
    mustHold('S1', event.type !== 'lease.expired' || uptime_ms >= last!.until_min, () => {
      return `${lock} expired ${last!.until_min - uptime_ms} ms early`
    })
    this.locks.set(lock, { ...last!, ended: true })
  }

  /** A new boot gives every lease that was in force one full TTL, from some moment after it. */
  rebooted(uptime_ms: number): void {
    for (const [name, lock] of this.locks) {
      if (lock.ended) continue
      if (lock.bound !== undefined) {
        // Nobody knows how long the machine was off: the time of the run may be up at once.
        const until_min = Number.NEGATIVE_INFINITY
        this.locks.set(name, { ...lock, until_min, until_max: Number.POSITIVE_INFINITY })
        continue
      }
      const until_min = uptime_ms < lock.until_min ? uptime_ms + lock.ttl_min : lock.until_min
      this.locks.set(name, { ...lock, until_min, until_max: Number.POSITIVE_INFINITY })
    }
  }

  /** A renewal was acknowledged, or its reply was lost and it may have happened. */
  renewed(lock: string, ttl_ms: number, uptime_ms: number, known: boolean): void {
    const last = this.locks.get(lock)
    if (!last || last.ended) return
    const until = uptime_ms + ttl_ms
    const until_max = known ? until : Math.max(until, last.until_max)
    const until_min = known ? until : Math.min(until, last.until_min)
    const ttl_min = known ? ttl_ms : Math.min(ttl_ms, last.ttl_min)
    const ttl_max = known ? ttl_ms : Math.max(ttl_ms, last.ttl_max)
    this.locks.set(lock, { ...last, ttl_min, ttl_max, until_min, until_max })
  }

  /** S2: judged by what was certain before the step began, and by the grants within it. */
  accepted(write: Accepted, uptime_ms: number): void {
    const { lock, fence, agent, what } = write
    const was = this.before.get(lock)
    const because = (why: string) => () => `${agent} was let to ${what} ${lock}: ${why}`
    if (fence !== undefined && was) {
      mustHold(
        'S2',
        fence >= was.fence,
        because(`fence ${fence}, but ${was.fence} was given since`),
      )
      const over = was.ended || uptime_ms >= was.until_max
      mustHold('S2', fence > was.fence || !over, because(`its lease ${fence} was over`))
    }
    const holders = this.grants.filter((grant) => grant.lock === lock).map((grant) => grant.agent)
    if (was && !was.ended) holders.push(was.holder)
    mustHold(
      'S2',
      holders.some((holder) => admits(holder, agent)),
      because('it did not hold it'),
    )
  }

  /** S5: all of the locks of one ask were granted in this step, or none. */
  askedFor({ agent, names, granted }: AskedFor): void {
    const got = names.filter((name) => {
      return this.grants.some((one) => one.asked && one.lock === name && one.agent === agent)
    })
    const whole = granted === 'unknown' ? [0, names.length] : [granted]
    mustHold(
      'S5',
      whole.includes(got.length) && (got.length === 0 || got.length === names.length),
      () => {
        return `${agent} asked for ${names.join(', ')} and got ${got.join(', ') || 'nothing'}`
      },
    )
  }

  /** S6: one run of a task ends once. */
  finished(task: string, fence: number, agent: string): void {
    const key = `${task}#${fence}`
    mustHold('S6', !this.ended.has(key), () => `${agent} ended ${key} a second time`)
    this.ended.add(key)
  }
}
