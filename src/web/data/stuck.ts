import { computed, effect, signal } from '@preact/signals'
import { nounOf } from '../../core/event.ts'
import type { Refusal } from '../../core/refusal.ts'
import type { AnswerOf, InputOf } from '../../operations/registry.ts'
import { ask, change, type Name } from '../ask.ts'
import { confirm } from '../parts/dialog.tsx'
import type { Act } from '../parts/resource.ts'
import { hrefOf } from '../route.ts'
import { who } from '../session.ts'
import { askInto } from './asked.ts'
import { connection, listen } from './live.ts'

/** All that the page knows of why work does not go on, and of how the whole is. */

type Stuck = AnswerOf<'stuck.get'>
export type ShownCause = Stuck['items'][number]
type About = ShownCause['about'][number]

/** Without an event a wait gets longer, a holder falls silent, and a store cannot be written. */
const LOOK_MS = 5_000
/** It looks at everything: not more often than this, whatever happens. */
const CALM_MS = 1_000
const SHOWN_MAX = 50
const NOUNS = new Set<string>(['lease', 'ticket', 'task', 'run', 'queue', 'dispatcher', 'alert'])

/** Asked for once, whichever views show it. */
export const stuck = signal<Stuck | undefined>(undefined)
export const stuckRefusal = signal<Refusal | null>(null)

const asking = askInto(
  stuck,
  stuckRefusal,
  (ending) => ask('stuck.get', { limit: SHOWN_MAX }, ending),
  CALM_MS,
)
listen({
  events: (events) => events.some((event) => NOUNS.has(nounOf(event))) && asking.soon(),
  reset: () => asking.soon(),
})
setInterval(() => who.value && !document.hidden && asking.soon(), LOOK_MS)
effect(() => void (who.value && asking.soon()))

/** What is over, and waits for a person to look: work goes on without. */
const INBOX = new Set<string>(['failed', 'review', 'quarantined'])
const RANKS = { bad: 0, warn: 1, info: 2 }

/** What keeps work from going on: what most waits behind stands first. */
export const blocked = computed(() =>
  (stuck.value?.items ?? [])
    .filter(({ kind }) => !INBOX.has(kind))
    .toSorted((a, b) => RANKS[a.severity] - RANKS[b.severity] || behind(b) - behind(a)),
)
const behind = ({ tasks, agents }: ShownCause) => tasks + agents

/** What goes on only if a person acts. */
export const needed = computed(() => blocked.value.filter(({ severity }) => severity !== 'info'))

/** How many tasks failed, or wait to be reviewed. */
export function waitingFor(kind: 'failed' | 'review'): { n: number; more: boolean } {
  const kinds = kind === 'failed' ? ['failed', 'quarantined'] : ['review']
  const found = (stuck.value?.items ?? []).filter((cause) => kinds.includes(cause.kind))
  return {
    n: found.reduce((sum, { tasks }) => sum + tasks, 0),
    more: found.some(({ at_least }) => at_least),
  }
}

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

/** What can be done about a cause; what it will do is said before it is done. */
export function remediesOf(cause: ShownCause): Act[] {
  const { what, next } = cause
  return cause.actions.map(({ says, operation, input, admin }) => ({
    says,
    label: `${says}: ${what}`,
    admin,
    act: () =>
      confirm({
        title: `${says}?`,
        says: [what, ...(next === '' ? [] : [next])],
        verb: says,
        danger: /release|cancel/i.test(says),
        run: async () => {
          await change(operation as Name, input as InputOf<Name>)
          return `${says}: done`
        },
      }),
  }))
}

/** Where the page shows what a cause is about. */
export function hrefOfAbout({ kind, id }: About): string {
  if (kind === 'task') return hrefOf('work', { id })
  if (kind === 'run') return hrefOf('work', { id: id.slice(0, id.lastIndexOf('.')), run: id })
  if (kind === 'lock') return hrefOf('who', { tab: 'locks', id })
  if (kind === 'agent') return hrefOf('who', { id })
  if (kind === 'user' || kind === 'project') return hrefOf('work', { show: 'all', [kind]: id })
  if (kind === 'limit') return hrefOf('settings')
  return hrefOf('history', { type: id })
}
