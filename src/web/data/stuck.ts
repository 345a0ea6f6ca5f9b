import { computed, effect, signal } from '@preact/signals'
import { nounOf } from '../../core/event.ts'
import type { About } from '../../core/stats/cause.ts'
import type { Refusal } from '../../core/refusal.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import { hrefOf } from '../route.ts'
import { who } from '../session.ts'
import { askInto } from './asked.ts'
import { connection, listen } from './live.ts'

type Stuck = AnswerOf<'stuck.get'>

/** Without an event a wait gets longer, a holder falls silent, and a store cannot be written. */
const LOOK_MS = 5_000
const SHOWN_MAX = 50
const NOUNS = new Set<string>(['lease', 'ticket', 'task', 'run', 'queue', 'dispatcher', 'alert'])

/** What is stuck, and why: asked for once, whichever views show it. */
export const stuck = signal<Stuck | undefined>(undefined)
export const stuckRefusal = signal<Refusal | null>(null)

/** What goes on only if a person looks. */
export const needed = computed(() => {
  return (stuck.value?.items ?? []).filter(({ severity }) => severity !== 'info')
})

const asking = askInto(stuck, stuckRefusal, () => ask('stuck.get', { limit: SHOWN_MAX }))
listen({
  events: (events) => events.some((event) => NOUNS.has(nounOf(event))) && asking.soon(),
  reset: () => asking.soon(),
})
setInterval(() => who.value && !document.hidden && asking.soon(), LOOK_MS)
effect(() => void (who.value && asking.soon()))

type HealthState = 'ok' | 'degraded' | 'paused' | 'silent' | 'lost' | 'unknown'

/** How things stand, for every view: what the server says of itself, or that it says nothing. */
export const health = computed((): { state: HealthState; why: string } => {
  if (connection.value === 'lost') return { state: 'lost', why: 'The server does not answer' }
  if (connection.value === 'silent') {
    return { state: 'silent', why: 'The server is connected, but says nothing' }
  }
  if (stuckRefusal.value) return { state: 'degraded', why: stuckRefusal.value.message }
  return stuck.value?.health ?? { state: 'unknown', why: '' }
})

/** Where the page shows what a cause or an alert is about. */
export function hrefOfAbout({ kind, id }: About): string {
  if (kind === 'task') return hrefOf('tasks', { id })
  if (kind === 'run') return hrefOf('tasks', { id: id.slice(0, id.lastIndexOf('.')), run: id })
  if (kind === 'lock') return hrefOf('locks', { id })
  if (kind === 'agent') return hrefOf('agents', { id })
  if (kind === 'user' || kind === 'project') return hrefOf('tasks', { as: 'list', [kind]: id })
  return kind === 'events' ? hrefOf('events', { type: id }) : hrefOf('now')
}
