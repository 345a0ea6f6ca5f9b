import { computed, effect, signal } from '@preact/signals'
import { nounOf } from '../../core/event.ts'
import type { Refusal } from '../../core/refusal.ts'
import type { AnswerOf, InputOf } from '../../operations/registry.ts'
import { ask, change, type Name } from '../ask.ts'
import type { Act } from '../parts/acts.tsx'
import { count } from '../parts/words.ts'
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
const isOver = ({ kind }: ShownCause) => INBOX.has(kind)

/** What keeps work from going on: what most waits behind stands first. */
export const blocked = computed(() => stuck.value?.items.filter((cause) => !isOver(cause)) ?? [])

/** What goes on only if a person acts. */
export const needed = computed(() => blocked.value.filter(({ severity }) => severity !== 'info'))

/** What of the inbox somebody has looked at here, by what it was about then. */
const SEEN = 'leasehold-seen'
const seen = signal<Record<string, string>>(JSON.parse(localStorage.getItem(SEEN) ?? '{}'))
const markOf = ({ tasks, about }: ShownCause) => JSON.stringify([tasks, about])

export const inbox = computed(
  () =>
    stuck.value?.items.filter((each) => isOver(each) && seen.value[each.id] !== markOf(each)) ?? [],
)

/** How many tasks failed, or wait to be reviewed. */
export function waitingFor(kind: 'failed' | 'review'): { n: number; more: boolean } {
  const found = inbox.value.filter((cause) => (cause.kind === 'review') === (kind === 'review'))
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

const remedy = async ({ operation, input }: ShownCause['actions'][number]) =>
  change(operation as Name, input as InputOf<Name>)

/** What can be done about a cause; what it will do is said before it is done. */
export function remediesOf(cause: ShownCause): Act[] {
  const { what, next, actions, tasks } = cause
  const each = actions.map((one): Act => {
    const { says, admin } = one
    return {
      says,
      admin,
      will: [what, next].filter(Boolean),
      kind: /release|cancel/i.test(says) ? 'danger' : undefined,
      run: async () => {
        await remedy(one)
        return `${says}: done`
      },
    }
  })
  if (!isOver(cause) || cause.kind === 'review') return each
  return [...(tasks > 1 ? [retriesAll(cause)] : each), dismisses(cause)]
}

/** The server proposes a few at a time: those that are done leave the group. */
const retriesAll = ({ id, what, tasks }: ShownCause): Act => ({
  says: `Retry all ${tasks}`,
  will: [what, 'All that failed with this reason go back to To do.'],
  run: async () => {
    const done = new Set<string>()
    for (;;) {
      const { items } = await ask('stuck.get', { limit: SHOWN_MAX })
      const group = items.find((each) => each.id === id)?.actions ?? []
      const left = group.filter(({ says }) => !done.has(says))
      if (left.length === 0)
        return `${count(done.size, 'task waits', 'tasks wait')} to be run again`
      for (const one of left) done.add((await remedy(one)) && one.says)
    }
  },
})

const dismisses = (cause: ShownCause): Act => ({
  says: 'Dismiss',
  label: `Dismiss: ${cause.what}`,
  will: [
    'It leaves the inbox of this browser, until another task fails like that.',
    'The tasks stay as they are: Work lists all that failed.',
  ],
  run: async () => {
    const still = new Set(stuck.value?.items.map(({ id }) => id))
    const kept = Object.entries(seen.value).filter(([id]) => still.has(id))
    seen.value = { ...Object.fromEntries(kept), [cause.id]: markOf(cause) }
    localStorage.setItem(SEEN, JSON.stringify(seen.value))
    return 'Dismissed'
  },
})

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
