import type { Condition } from '../../core/stats/alert.ts'
import { type Event, factsOf } from '../../core/event.ts'
import { TRUST_NEXT, UNTRUSTED } from '../../machine/codex_trust.ts'
import { headerText } from '../../reach/header_text.ts'
import type { Config } from '../config/config.ts'

type Rules = Pick<
  Config['alerts']['rules'],
  'lock_expired' | 'agent_lost' | 'deadlock' | 'recover_seconds'
>

/** Locks of our own programs: the next program takes them, and nobody has to know. */
const OWN = /^leasehold:/

/** Codex is asked when it is started; where it is not started any more, nobody has to know. */
const UNTRUSTED_MS = 24 * 3600_000

export interface Seen {
  raised: Condition[]
  cleared: string[]
}

/** In ids that others see and headers carry, a name of any script is percent-encoded. */
const named = (name: string) => headerText(name.replaceAll('%', '%25'))
const lockKey = (lock: string) => `lock_expired:${named(lock)}`
const agentKey = (agent: string) => `agent_lost:${named(agent)}`
const deadlockKey = (agent: string) => `deadlock:${named(agent)}`
export const waitKey = (ticket: string) => `long_wait:${named(ticket)}`
export const untrustedKey = (folder: string) => `hooks_untrusted:${named(folder)}`
export const QUEUE_KEY = 'queue_age'

/** What events say: a lock expired, an agent was lost or in a deadlock, or either is back. */
export function conditionsIn(events: Event[], rules: Rules): Seen {
  const seen: Seen = { raised: [], cleared: [] }
  // Counted from the commit that writes it.
  const quiet_ms = rules.recover_seconds * 1000
  for (const { type, agent, lock, data } of events) {
    if (type === 'lease.expired' && lock !== null && rules.lock_expired && !OWN.test(lock)) {
      const message = `${lock} expired: ${data.holder} neither renewed nor released it`
      const key = lockKey(lock)
      seen.raised.push({ key, rule: 'lock_expired', subject: lock, message, quiet_ms })
    } else if (type === 'agent.lost' && rules.agent_lost && !OWN.test(data.lock)) {
      const message = `agent ${agent} was lost: its last lease, ${data.lock}, expired`
      const key = agentKey(agent)
      seen.raised.push({ key, rule: 'agent_lost', subject: agent, message, quiet_ms })
    } else if (type === 'deadlock.found' || type === 'ticket.broken') {
      const message = `Waiting would never end: ${data.cycle.join('; ')}`
      const key = deadlockKey(agent)
      if (rules.deadlock) {
        seen.raised.push({ key, rule: 'deadlock', subject: agent, message, quiet_ms })
      }
    } else if (type === 'hook.untrusted') {
      const { folder: subject } = data
      const message = `in ${subject}: ${UNTRUSTED}. ${TRUST_NEXT}`
      const key = untrustedKey(subject)
      seen.raised.push({ key, rule: 'hooks_untrusted', subject, message, quiet_ms: UNTRUSTED_MS })
    } else if (type === 'hook.trusted') {
      seen.cleared.push(untrustedKey(data.folder))
    } else if (type === 'lease.granted' || type === 'task.claimed') {
      seen.cleared.push(agentKey(agent), lockKey(lock ?? ''), deadlockKey(agent))
    }
  }
  return seen
}

/** Waiters, and when each has waited too long. They come in the order in which they asked. */
export class Waits {
  private readonly due = new Map<string, { at_ms: number; agent: string; lock: string }>()

  join(ticket: string, agent: string, lock: string, at_ms: number): void {
    this.due.set(ticket, { at_ms, agent, lock })
  }

  clear(): void {
    this.due.clear()
  }

  /** Tickets of these events that wait no more. */
  hear(events: Event[], now_ms: number, bound_ms: number): string[] {
    const left: string[] = []
    for (const event of events) {
      const { type, agent, lock } = event
      const { ticket } = factsOf(event)
      if (ticket === undefined) continue
      if (type === 'ticket.joined') this.join(ticket, agent, lock ?? '', now_ms + bound_ms)
      else if (type !== 'ticket.called') {
        this.due.delete(ticket)
        left.push(ticket)
      }
    }
    return left
  }

  /** When the first of them has waited too long. */
  get next_ms(): number {
    const [first] = this.due.values()
    return first?.at_ms ?? Number.POSITIVE_INFINITY
  }

  /** Those who have waited too long; each is reported once. */
  overdue(now_ms: number, bound_seconds: number): Condition[] {
    const found: Condition[] = []
    for (const [ticket, { at_ms, agent, lock }] of this.due) {
      if (at_ms > now_ms) break
      this.due.delete(ticket)
      const message = `${agent} has waited for ${lock} for over ${bound_seconds} s`
      const subject = `${agent} for ${lock}`
      found.push({ key: waitKey(ticket), rule: 'long_wait', subject, message, quiet_ms: null })
    }
    return found
  }
}
