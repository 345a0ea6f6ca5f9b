import {
  clearAlert,
  type Condition,
  type Heard,
  heardIn,
  lookAtAlerts,
  raiseAlert,
} from '../../core/reasons/alert.ts'
import type { Event } from '../../core/event.ts'
import { endsLease } from '../../core/refusal.ts'
import { TRUST_NEXT, UNTRUSTED } from '../../machine/codex_trust.ts'
import { host } from '../../machine/process.ts'
import { showTrouble } from '../../operations/stats.ts'
import type { Store } from '../../stores/writer/store.ts'
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
/** While anything is raised, any change may end it; it is looked at no more often than this. */
const LOOK_AGAIN_MS = 1_000
/** A timer can wait no longer than this. */
const TIMER_MS_MAX = 2 ** 31 - 1
/** Events before our time are read so far back: whoever had the role may be gone for so long. */
const MISSED_MS = 120_000
const PAGE = 500
const MISSED_MAX = 20 * PAGE

/**
 * Watches for conditions that a person should know of, and sends alerts. Conditions are kept in the
 * store: each is sent once, and its end once, across restarts. Nothing is looked at in vain: it
 * acts on events, and has one timer for the next instant at which a bound could be crossed.
 */
export class Alerter {
  /** What was heard and is not in the store yet: that may be in trouble. */
  private readonly heard = new Map<string, Exclude<Heard['seen'], 'told'>>()
  /** Whether the events before those that we hear have yet to be read. */
  private isBehind = true
  private isActive = false
  private due_ms = Infinity
  private timer: NodeJS.Timeout | undefined
  private work: Promise<void> = Promise.resolve()
  private readonly delivery: Delivery
  private trouble: Notice | undefined
  private trouble_ms = Infinity
  private forget: (() => void)[] = []
  private stopped = false

  constructor(
    private readonly store: Store,
    private readonly options: AlerterOptions,
  ) {
    this.delivery = new Delivery(store, options)
  }

  /** Begins to watch; a daemon that starts does not wait for it. */
  start(): void {
    const lookAfresh = () => {
      this.isBehind = true
      this.enqueue(() => this.look())
    }
    this.forget.push(
      this.store.onCommit((events) => this.hear(events), lookAfresh),
      this.store.meter.onChange(() => this.hearTrouble()),
    )
    lookAfresh()
  }

  /** New bounds, or new channels to send by. */
  reload(alerts: Config['alerts']): void {
    this.options.alerts = alerts
    this.enqueue(async () => {
      await this.delivery.reload(alerts)
      await this.look()
    })
  }

  async stop(): Promise<void> {
    this.stopped = true
    for (const forget of this.forget) forget()
    clearTimeout(this.timer)
    await this.work
    await this.delivery.stop()
  }

  private get rules() {
    return { ...this.options.alerts.rules, untrusted: `${UNTRUSTED}. ${TRUST_NEXT}` }
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
        this.lookWithin(RETRY_MS)
      }
    })
  }

  private hear(events: Event[]): void {
    const { rules } = this
    const { wait_seconds, queue_age_seconds } = rules
    for (const event of events) {
      const { key, seen } = heardIn(event, rules) ?? {}
      if (seen !== undefined && seen !== 'told') this.heard.set(key!, seen)
    }
    if (this.heard.size > 0) this.lookWithin(0)
    else if (this.isActive) this.lookWithin(LOOK_AGAIN_MS)
    // Any change may leave another the one who has waited longest: one more look costs little.
    else this.lookWithin(Math.min(wait_seconds ?? Infinity, queue_age_seconds ?? Infinity) * 1000)
  }

  /**
   * What happened before we listened, while no daemon ran or another had the role, and was not told
   * since. An alert that is raised or cleared leaves an event: what was done about each is known.
   */
  private async catchUp(): Promise<void> {
    const { recover_seconds } = this.rules
    const since = new Date(Date.now() - Math.max(MISSED_MS, recover_seconds * 1000)).toISOString()
    const { position } = await this.store.head()
    const missed: Event[] = []
    for (let after = position; after > Math.max(0, position - MISSED_MAX);) {
      const last = after
      after = Math.max(0, last - PAGE)
      const page = await this.store.events(after, last - after)
      missed.unshift(...page.filter(({ at }) => at >= since))
      if (!page[0] || page[0].at < since) break
    }
    const found = new Map<string, Condition | 'over'>()
    for (const event of missed) {
      const { key, seen } = heardIn(event, this.rules) ?? {}
      if (seen === 'told') found.delete(key!)
      else if (seen) found.set(key!, seen)
    }
    // What we have heard ourselves is newer.
    for (const [key, seen] of found) if (!this.heard.has(key)) this.heard.set(key, seen)
    this.isBehind = false
  }

  /** One transaction, where there is anything to write: refused when another has the role. */
  private async look(): Promise<void> {
    this.due_ms = Infinity
    if (this.isBehind) await this.catchUp()
    const { rules, heard } = this
    const tells = hasChannel(this.options.alerts)
    const due = [...heard]
    let found = await this.store.read((view) => lookAtAlerts(view, rules))
    if (due.length + found.raised.length + found.over.length > 0) {
      found = await this.store.write((view) => {
        this.options.role.check(view)
        for (const [key, seen] of due) {
          if (seen === 'over') clearAlert(view, key, tells)
          else raiseAlert(view, seen, tells)
        }
        const { raised, over } = lookAtAlerts(view, rules)
        for (const each of raised) raiseAlert(view, each, tells)
        for (const key of over) clearAlert(view, key, tells)
        return lookAtAlerts(view, rules)
      })
      for (const [key, seen] of due) if (heard.get(key) === seen) heard.delete(key)
    }
    await this.delivery.settleAll()
    this.delivery.send()
    this.isActive = found.active > 0
    this.lookWithin(found.next_ms)
  }

  /** One timer, for whatever comes first. */
  private lookWithin(ms: number): void {
    this.due_ms = Math.min(this.due_ms, performance.now() + ms)
    clearTimeout(this.timer)
    const next_ms = Math.min(this.due_ms, this.trouble_ms)
    if (this.stopped || next_ms === Infinity) return
    const left_ms = Math.min(TIMER_MS_MAX, Math.max(0, next_ms - performance.now()))
    this.timer = setTimeout(() => this.wake(), left_ms).unref()
  }

  private wake(): void {
    const now_ms = performance.now()
    if (now_ms >= this.trouble_ms) this.raiseTrouble()
    if (now_ms >= this.due_ms) this.enqueue(() => this.look())
    else this.lookWithin(Infinity)
  }

  /** A store in trouble cannot keep this alert: it is sent from memory. */
  private hearTrouble(): void {
    const bound_seconds = this.rules.store_trouble_seconds
    const { trouble } = this.store.meter
    if (trouble && bound_seconds !== null) {
      this.trouble_ms = performance.now() + bound_seconds * 1000
    } else {
      this.trouble_ms = Infinity
      const { trouble: told } = this
      this.trouble = undefined
      if (told) {
        const ended_at = new Date().toISOString()
        this.delivery.tell({ ...told, id: `${told.id}/cleared`, state: 'cleared', ended_at })
      }
      if (!trouble) this.enqueue(() => this.look())
    }
    this.lookWithin(Infinity)
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
