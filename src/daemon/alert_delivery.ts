import { tellAlert, untoldAlerts } from '../core/alert.ts'
import { Refusal } from '../core/refusal.ts'
import type { Alert } from '../core/stat_rows.ts'
import { host } from '../stores/process.ts'
import type { Store } from '../stores/store.ts'
import { type Channels, hasChannel, type Notice, sendNotice } from './alert_sender.ts'
import type { Role } from './role.ts'

const BACKOFF_MS = { first: 1_000, most: 300_000 }
const TRIES_MAX = 12

interface DeliveryOptions {
  role: Role
  alerts: Channels
  env: NodeJS.ProcessEnv
  say: (sentence: string) => void
}

/**
 * Tells what is untold, one notice after the other. What is to be told is in the store, and is
 * marked when it was delivered: after a crash it is told again at worst, under the same id.
 */
export class Delivery {
  private readonly store: Store
  private readonly options: DeliveryOptions
  private alerts: Channels
  /** What the store cannot keep, being in trouble itself. */
  private readonly unsent: Notice[] = []
  private sending: Promise<void> | undefined
  private again = false
  private tries = 0
  private retry: NodeJS.Timeout | undefined
  private stopped = false

  constructor(store: Store, options: DeliveryOptions) {
    this.store = store
    this.options = options
    this.alerts = options.alerts
  }

  reload(alerts: Channels): void {
    this.alerts = alerts
    this.tries = 0
  }

  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.retry)
    await this.sending
  }

  /** From memory: it is lost if this process ends before it is delivered. */
  tell(notice: Notice): void {
    this.options.say(`alert ${notice.state}: ${notice.message}`)
    if (!hasChannel(this.alerts)) return this.store.meter.markTold()
    this.unsent.push(notice)
    this.send()
  }

  send(): void {
    if (!hasChannel(this.alerts) || this.stopped) return
    this.again = true
    this.sending ??= this.sendAll().finally(() => (this.sending = undefined))
  }

  /** What cannot be delivered is tried again, later and later. */
  private async sendAll(): Promise<void> {
    clearTimeout(this.retry)
    try {
      while (this.again && !this.stopped) {
        this.again = false
        await this.sendUntold()
      }
      this.tries = 0
    } catch (error) {
      if (!isAnothers(error) && !this.stopped) await this.failed(error as Error)
    }
  }

  private async sendUntold(): Promise<void> {
    for (let notice; (notice = this.unsent[0]) && !this.stopped; this.unsent.shift()) {
      await sendNotice(this.alerts, notice, this.options.env)
      if (notice.state === 'raised') this.store.meter.markTold()
    }
    for (let next; (next = await this.nextUntold()) && !this.stopped;) {
      await sendNotice(this.alerts, noticeOf(next), this.options.env)
      await this.markTold(next)
      this.tries = 0
    }
  }

  private nextUntold(): Promise<Alert | undefined> {
    return this.store.read((view) => {
      for (const alert of untoldAlerts(view)) return alert
      return undefined
    })
  }

  private async markTold(seen: Alert): Promise<void> {
    await this.store.write((view) => {
      this.options.role.check(view)
      tellAlert(view, seen)
    })
  }

  private async failed(error: Error): Promise<void> {
    this.tries += 1
    this.options.say(`an alert could not be sent (try ${this.tries}): ${error.message}`)
    const pause_ms = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** (this.tries - 1))
    if (this.tries >= TRIES_MAX) await this.giveUp()
    this.retry = setTimeout(() => this.send(), pause_ms * (0.5 + Math.random() / 2)).unref()
  }

  /** After so many tries, so that those behind it are told. */
  private async giveUp(): Promise<void> {
    this.tries = 0
    if (this.unsent.shift()) return
    try {
      const given = await this.nextUntold()
      if (given) await this.markTold(given)
    } catch {
      // The store is in trouble too; the next try finds the same.
    }
  }
}

function noticeOf({ key, rule, subject, message, since_at, ended_at, told }: Alert): Notice {
  // A condition that was over before anybody heard of it is told from its beginning.
  const state = told ? 'cleared' : 'raised'
  const id = `${key}@${since_at}/${state}`
  const over = told ? ended_at : null
  return { id, state, rule, subject, message, since: since_at, ended_at: over, host }
}

/** The role is not ours at the moment: whoever has it tells. */
export function isAnothers(error: unknown): boolean {
  return error instanceof Refusal && ['fence_stale', 'lease_expired', 'held'].includes(error.code)
}
