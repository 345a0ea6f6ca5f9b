import type { Alert, AlertState } from '../../core/schema/stats.ts'
import { dueAlerts, settleAlerts, tellAlert } from '../../core/reasons/alert.ts'
import { headerText } from '../../reach/header_text.ts'
import { host } from '../../machine/process.ts'
import type { Store } from '../../stores/writer/store.ts'
import { Courier, type Letters } from './courier.ts'
import { type Channels, type Notice, sendersOf } from './sender.ts'
import type { Role } from '../role.ts'

interface DeliveryOptions {
  role: Role
  alerts: Channels
  env: NodeJS.ProcessEnv
  say: (sentence: string) => void
}

/**
 * Sends what was not sent yet, by every channel on its own. Notices are in the store, and are
 * marked when they were delivered: after a crash one is sent again at worst, under the same id.
 */
export class Delivery implements Letters {
  private couriers = new Map<string, Courier>()
  /** What a store in trouble cannot keep, and the channels that have yet to send it. */
  private unsent: { notice: Notice; left: Set<string> }[] = []

  private isSettled = false

  constructor(
    private readonly store: Store,
    private readonly options: DeliveryOptions,
  ) {
    this.employ(options.alerts)
  }

  private get channels(): string[] {
    return [...this.couriers.keys()]
  }

  private employ(alerts: Channels): void {
    this.isSettled = false
    const senders = [...sendersOf(alerts)]
    const { env } = this.options
    this.couriers = new Map(
      senders.map(([name, send]) => [name, new Courier(name, send, env, this)]),
    )
  }

  async reload(alerts: Channels): Promise<void> {
    await this.stop()
    this.employ(alerts)
    for (const { left } of this.unsent) {
      for (const name of left) if (!this.couriers.has(name)) left.delete(name)
    }
    this.unsent = this.unsent.filter(({ left }) => left.size > 0)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.couriers.values()].map((courier) => courier.stop()))
  }

  /** With the channels that there are now, nothing waits for one that there is not. Once. */
  async settleAll(): Promise<void> {
    if (this.isSettled) return
    const { channels } = this
    await this.store.write((view) => {
      this.options.role.check(view)
      settleAlerts(view, channels)
    })
    this.isSettled = true
  }

  /** From memory: it is lost if this process ends before it is delivered. */
  tell(notice: Notice): void {
    this.options.say(`alert ${notice.state}: ${notice.message}`)
    if (this.couriers.size === 0) return this.store.meter.markTold()
    this.unsent.push({ notice, left: new Set(this.channels) })
    this.send()
  }

  send(): void {
    for (const courier of this.couriers.values()) courier.wake()
  }

  say(sentence: string): void {
    this.options.say(sentence)
  }

  async due(channel: string): Promise<Notice[]> {
    const kept = this.unsent.filter(({ left }) => left.has(channel)).map(({ notice }) => notice)
    // While the store is in trouble, that is what there is to tell.
    if (kept.length > 0) return kept
    const due = await this.store.read((view) => dueAlerts(view, channel))
    return due.map(({ alert, state }) => noticeOf(alert, state))
  }

  async settle(channel: string, id: string, why: string | null): Promise<void> {
    const kept = this.unsent.find(({ notice }) => notice.id === id)
    if (kept) return this.settleKept(kept, channel)
    const { channels } = this
    await this.store.write((view) => {
      this.options.role.check(view)
      const due = dueAlerts(view, channel)
      const found = due.find(({ alert, state }) => noticeOf(alert, state).id === id)
      if (found) tellAlert(view, { ...found, channel, why }, channels)
    })
  }

  private settleKept(kept: { notice: Notice; left: Set<string> }, channel: string): void {
    kept.left.delete(channel)
    if (kept.left.size > 0) return
    this.unsent = this.unsent.filter((each) => each !== kept)
    if (kept.notice.state === 'raised') this.store.meter.markTold()
  }
}

function noticeOf(alert: Alert, state: AlertState): Notice {
  const { key, rule, subject, message, since_at } = alert
  // Of an alert that an earlier version raised, the key may be in any script.
  const id = headerText(`${key}@${since_at}/${state}`)
  // A condition that was over before it was sent is sent from its beginning.
  const ended_at = state === 'cleared' ? alert.ended_at : null
  return { id, state, rule, subject, message, since: since_at, ended_at, host }
}
