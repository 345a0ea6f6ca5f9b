import {
  activeAlerts,
  clearAlert,
  type Condition,
  oldestQueued,
  raiseAlert,
} from '../../core/stats/alert.ts'
import type { Event } from '../../core/event.ts'
import { endsLease } from '../../core/refusal.ts'
import { showTrouble } from '../../operations/stats.ts'
import { host } from '../../machine/process.ts'
import type { Store } from '../../stores/writer/store.ts'
import { conditionsIn, QUEUE_KEY, type Seen, waitKey, Waits } from './conditions.ts'
import { Delivery } from './delivery.ts'
import { hasChannel, type Notice } from './sender.ts'
import type { Config } from '../config/config.ts'
import type { Role } from '../role.ts'

interface AlerterOptions {
  /** Of several daemons on one store, the one with this role sends alerts. */
  role: Role
  alerts: Config['alerts']
  env: NodeJS.ProcessEnv
  say: (sentence: string) => void
}

/** Our role may be taken anew in a moment, after a restore for one; or the store gets well. */
const RETRY_MS = 5_000
/** While the queue is too old, its age is looked at no more often. */
const LOOK_AGAIN_MS = 1_000
/** A timer can wait no longer than this. */
const TIMER_MS_MAX = 2 ** 31 - 1

/**
 * Watches for conditions that a person should know of, and sends alerts. Conditions are kept in the
 * store: each is sent once, and its end once, across restarts. Nothing is looked at in vain: it
 * acts on events, and has one timer for the next instant at which a bound could be crossed.
 */
export class Alerter {
  private alerts: Config['alerts']
  private readonly waits = new Waits()
  /** Alerts that end by themselves, by when. */
  private readonly quiet = new Map<string, number>()
  /** What is raised now, and what it says. */
  private readonly active = new Map<string, string>()
  /** What was seen and is not in the store yet: that may be in trouble. */
  private readonly unwritten = new Map<string, Condition | 'over'>()
  private queue_ms = Number.POSITIVE_INFINITY
  private timer: NodeJS.Timeout | undefined
  private work: Promise<void> = Promise.resolve()
  private retry: NodeJS.Timeout | undefined
  private readonly delivery: Delivery
  private trouble: Notice | undefined
  private trouble_ms = Number.POSITIVE_INFINITY
  private forget: (() => void)[] = []
  private stopped = false

  constructor(
    private readonly store: Store,
    private readonly options: AlerterOptions,
  ) {
    this.alerts = options.alerts
    this.delivery = new Delivery(store, options)
  }

  /** Begins to watch; a daemon that starts does not wait for it. */
  start(noticed: Event[]): void {
    this.forget.push(
      this.store.onCommit(
        (events) => this.hear(events),
        () => this.enqueue(() => this.lookAtAll()),
      ),
      this.store.meter.onChange(() => this.hearTrouble()),
    )
    this.enqueue(() => this.lookAtAll())
    // Also when the store could not be looked at.
    this.enqueue(async () => this.hear(noticed))
  }

  /** New bounds, or new channels to send by. */
  reload(alerts: Config['alerts']): void {
    this.alerts = alerts
    this.enqueue(async () => {
      await this.delivery.reload(alerts)
      await this.lookAtAll()
    })
  }

  async stop(): Promise<void> {
    this.stopped = true
    for (const forget of this.forget) forget()
    clearTimeout(this.timer)
    clearTimeout(this.retry)
    await this.work
    await this.delivery.stop()
  }

  private get tells(): boolean {
    return hasChannel(this.alerts)
  }

  /** One step after the other; what a store in trouble did not let happen is tried again. */
  private enqueue(step: () => Promise<void>): void {
    this.work = this.work.then(async () => {
      if (this.stopped) return
      try {
        await step()
      } catch (error) {
        // The role is another daemon's by now, and that one tells.
        if (!endsLease(error)) {
          this.options.say(`alerts have to wait: ${(error as Error).message}`)
        }
        this.tryLater()
      }
      this.arm()
    })
  }

  private tryLater(): void {
    clearTimeout(this.retry)
    this.retry = setTimeout(() => this.enqueue(() => this.lookAtAll()), RETRY_MS).unref()
  }

  /** What holds now: at the start, after a restore, and with new bounds. */
  private async lookAtAll(): Promise<void> {
    const { wait_seconds } = this.alerts.rules
    const bound_ms = (wait_seconds ?? 0) * 1000
    const now_ms = performance.now()
    const found = await this.store.read((view) => ({
      now: view.now,
      active: [...activeAlerts(view)],
      tickets: [...view.scan('tickets', '')].filter(({ cycle }) => cycle === null),
    }))
    this.waits.clear()
    this.quiet.clear()
    this.active.clear()
    const known = new Set(found.active.map(({ key }) => key))
    for (const { id, agent, names, asked_ms } of found.tickets.toSorted(byAge)) {
      const at_ms = now_ms + bound_ms - (found.now - asked_ms)
      if (wait_seconds !== null && !known.has(waitKey(id))) {
        this.waits.join(id, agent, names[0] ?? '', at_ms)
      }
    }
    for (const { key, message, quiet_ms } of found.active) {
      this.active.set(key, message)
      if (quiet_ms !== null) this.quiet.set(key, now_ms + quiet_ms - found.now)
    }
    const waiting = new Set(found.tickets.map(({ id }) => waitKey(id)))
    const over = found.active.filter(({ key, rule }) => {
      return !this.looksFor(rule) || (rule === 'long_wait' && !waiting.has(key))
    })
    await this.write({ raised: [], cleared: over.map(({ key }) => key) })
    await this.delivery.settleAll()
    this.queue_ms = this.alerts.rules.queue_age_seconds === null ? Infinity : now_ms
    this.delivery.send()
  }

  /** Whether there is a rule, by the configuration, that could end what it has raised. */
  private looksFor(rule: string): boolean {
    const { lock_expired, agent_lost, deadlock, wait_seconds, queue_age_seconds } =
      this.alerts.rules
    const rules: Record<string, boolean> = {
      lock_expired,
      agent_lost,
      deadlock,
      long_wait: wait_seconds !== null,
      queue_age: queue_age_seconds !== null,
    }
    return rules[rule] ?? true
  }

  private hear(events: Event[]): void {
    const now_ms = performance.now()
    const { rules } = this.alerts
    const left =
      rules.wait_seconds === null ? [] : this.waits.hear(events, now_ms, rules.wait_seconds * 1000)
    const seen = conditionsIn(events, rules)
    const cleared = [...seen.cleared, ...left.map(waitKey)].filter((key) => {
      return this.active.has(key) || this.unwritten.has(key)
    })
    if (seen.raised.length > 0 || cleared.length > 0) {
      this.enqueue(() => this.write({ raised: seen.raised, cleared }))
    }
    // Any change may leave another task the oldest of the queue: to look once more costs little.
    if (rules.queue_age_seconds !== null) {
      const soon_ms = this.active.has(QUEUE_KEY) ? LOOK_AGAIN_MS : rules.queue_age_seconds * 1000
      this.queue_ms = Math.min(this.queue_ms, now_ms + soon_ms)
    }
    this.arm()
  }

  /**
   * One transaction; refused when another server has the role by now. What could not be written
   * comes along with the next.
   */
  private async write({ raised, cleared }: Seen): Promise<void> {
    for (const each of raised) this.unwritten.set(each.key, each)
    for (const key of cleared) this.unwritten.set(key, 'over')
    const due = [...this.unwritten]
    if (due.length === 0) return
    const { tells } = this
    await this.store.write((view) => {
      this.options.role.check(view)
      for (const [key, seen] of due) {
        if (seen === 'over') clearAlert(view, key, tells)
        else {
          const quiet_ms = seen.quiet_ms === null ? null : view.now + seen.quiet_ms
          raiseAlert(view, { ...seen, quiet_ms }, tells)
        }
      }
    })
    for (const [key, seen] of due) {
      if (this.unwritten.get(key) === seen) this.unwritten.delete(key)
      this.quiet.delete(key)
      if (seen === 'over') this.active.delete(key)
      else {
        this.active.set(key, seen.message)
        if (seen.quiet_ms !== null) this.quiet.set(key, performance.now() + seen.quiet_ms)
      }
    }
    this.delivery.send()
  }

  /** One timer, for whatever comes first. */
  private arm(): void {
    clearTimeout(this.timer)
    if (this.stopped) return
    const next_ms = Math.min(
      this.waits.next_ms,
      this.queue_ms,
      this.trouble_ms,
      ...this.quiet.values(),
    )
    if (next_ms === Infinity) return
    const left_ms = Math.min(TIMER_MS_MAX, Math.max(0, next_ms - performance.now()))
    this.timer = setTimeout(() => this.enqueue(() => this.lookAtDue()), left_ms).unref()
  }

  private async lookAtDue(): Promise<void> {
    const now_ms = performance.now()
    const { wait_seconds } = this.alerts.rules
    if (now_ms >= this.trouble_ms) this.raiseTrouble()
    const raised = wait_seconds === null ? [] : this.waits.overdue(now_ms, wait_seconds)
    const cleared = [...this.quiet].filter(([, at_ms]) => at_ms <= now_ms).map(([key]) => key)
    if (now_ms >= this.queue_ms) {
      const { raised: old, cleared: young } = await this.lookAtQueue()
      raised.push(...old)
      cleared.push(...young)
    }
    await this.write({ raised, cleared })
  }

  private async lookAtQueue(): Promise<Seen> {
    this.queue_ms = Infinity
    const bound_seconds = this.alerts.rules.queue_age_seconds
    if (bound_seconds === null) return { raised: [], cleared: [] }
    const oldest = await this.store.read(oldestQueued)
    const left_ms = bound_seconds * 1000 - (oldest?.age_ms ?? 0)
    if (oldest && left_ms <= 0) {
      const condition = queueCondition(oldest, bound_seconds)
      const isSaid = this.active.get(QUEUE_KEY) === condition.message
      return { raised: isSaid ? [] : [condition], cleared: [] }
    }
    if (oldest) this.queue_ms = performance.now() + left_ms
    return { raised: [], cleared: this.active.has(QUEUE_KEY) ? [QUEUE_KEY] : [] }
  }

  /** A store in trouble cannot keep this alert: it is sent from memory. */
  private hearTrouble(): void {
    const bound_seconds = this.alerts.rules.store_trouble_seconds
    const { trouble } = this.store.meter
    if (trouble && bound_seconds !== null) {
      this.trouble_ms = performance.now() + bound_seconds * 1000
    } else {
      this.trouble_ms = Infinity
      const { trouble: told } = this
      this.trouble = undefined
      if (told)
        this.delivery.tell({
          ...told,
          id: `${told.id}/cleared`,
          state: 'cleared',
          ended_at: new Date().toISOString(),
        })
      if (!trouble) this.enqueue(() => this.lookAtAll())
    }
    this.arm()
  }

  private raiseTrouble(): void {
    this.trouble_ms = Infinity
    const { trouble } = this.store.meter
    if (!trouble || this.trouble) return
    const { id, rule, subject, message, since } = showTrouble(trouble)
    this.trouble = { id, rule, subject, message, since, state: 'raised', ended_at: null, host }
    this.delivery.tell(this.trouble)
  }
}

const byAge = (a: { asked_ms: number }, b: { asked_ms: number }) => a.asked_ms - b.asked_ms

function queueCondition(oldest: { task: string; age_ms: number }, bound: number): Condition {
  const message = `task ${oldest.task} is next in its queue and has waited for over ${bound} s`
  const subject = `task ${oldest.task}`
  return { key: QUEUE_KEY, rule: 'queue_age', subject, message, quiet_ms: null }
}
