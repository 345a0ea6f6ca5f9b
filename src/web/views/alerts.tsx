import { ask } from '../ask.ts'
import { holderIn } from '../data/about.ts'
import { now, useAsked } from '../data/asked.ts'
import { feed } from '../data/feed.ts'
import type { ShownEvent } from '../data/live.ts'
import { waiters } from '../data/locks.ts'
import { Icon } from '../parts/icon.tsx'
import { Panel } from '../parts/frame.tsx'
import { ago, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

const RECENT_SECONDS = 3600
const LONG_WAIT_SECONDS = 60
const SHOWN_MAX = 8
const LOOK_MS = 15_000

type Alert = Record<'key' | 'says' | 'when' | 'href', string>

/** What went wrong in the last hour, and who waits too long now. */
export function Alerts() {
  const asked = useAsked('alerts', () => ask('alert.list'), { every_ms: LOOK_MS })
  const items = asked.value.value?.items ?? []
  const href = hrefOf('events')
  const standing = items.map(({ id: key, message: says, since }) => {
    return { key, says, when: ago(since, now.value), href }
  })
  const known = new Set(items.map(({ rule, subject }) => `${rule} ${subject}`))
  const alerts = [...standing, ...longWaits(known), ...troubles(known)].slice(0, SHOWN_MAX)
  // What cannot even be asked is an alert of its own.
  const { value: refusal } = asked.refusal
  if (refusal) alerts.unshift({ key: refusal.code, says: refusal.message, when: '', href })
  return (
    <Panel title="Alerts" aside={<span class="number">{alerts.length}</span>}>
      {alerts.length === 0 ? (
        <p class="fine">
          <Icon name="done" /> Nothing needs a person.
        </p>
      ) : (
        <ul class="rows">
          {alerts.map(({ key, says, when, href: about }) => (
            <li key={key} class="row alert">
              <Icon name="lost" />
              <a href={about}>{says}</a>
              <span class="dim number">{when}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function longWaits(known: Set<string>): Alert[] {
  return waiters.value.flatMap(({ id, agent, names, asked_at }) => {
    const seconds = secondsSince(asked_at, now.value)
    if (seconds < LONG_WAIT_SECONDS || known.has(`long_wait ${agent} for ${names[0]}`)) return []
    const says = `${agent} waits for ${names.join(', ')}`
    return [{ key: id, says, when: span(seconds), href: hrefOf('locks', { q: names[0]! }) }]
  })
}

const SAYS: Record<string, (event: ShownEvent) => string> = {
  'lease.expired': (event) => `${holderIn(event)} let ${event.lock} expire`,
  'lease.died': (event) => `${holderIn(event)} died holding ${event.lock}`,
  'lease.overdue': (event) => `${holderIn(event)} took too long with ${event.lock}`,
  'agent.lost': ({ agent }) => `${agent} was lost`,
  'task.quarantined': ({ task }) => `Task ${task} was put aside after too many lost runs`,
  'deadlock.found': ({ agent, lock }) => `${agent} would have waited for ever for ${lock}`,
  'ticket.broken': ({ agent }) => `${agent} was let go to break a deadlock`,
  'write.fenced_off': ({ agent, lock }) => `A stale write of ${agent} under ${lock} was refused`,
}

/** What an event and an alert of the server would both say is said once. */
function isKnown({ type, agent, lock }: ShownEvent, known: Set<string>): boolean {
  if (type === 'agent.lost') return known.has(`agent_lost ${agent}`)
  return type === 'lease.expired' && known.has(`lock_expired ${lock}`)
}

function troubles(known: Set<string>): Alert[] {
  return feed.value.flatMap((event) => {
    const say = isKnown(event, known) ? undefined : SAYS[event.type]
    if (!say || secondsSince(event.at, now.value) > RECENT_SECONDS) return []
    const href = event.task
      ? hrefOf('tasks', { id: event.task })
      : hrefOf('events', { q: event.lock ?? event.agent })
    return [{ key: `${event.position}`, says: say(event), when: ago(event.at, now.value), href }]
  })
}
