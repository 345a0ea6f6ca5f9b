import { LANDING_STATUSES } from '../../core/landing/rows.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { cancelLanding, landAgain } from '../actions.ts'
import { aboutBranches } from '../data/about.ts'
import { now, useAnswer } from '../data/asked.ts'
import { type ListedLanding, LOOK_MS, ontoOf } from '../data/branches.ts'
import { changed, tasks } from '../data/tasks.ts'
import { LANDING_NAMES, LandingBadge } from '../parts/badge.tsx'
import { Acts } from '../parts/buttons.tsx'
import type { ShownFact } from '../parts/frame.tsx'
import { Opens } from '../parts/opens.tsx'
import type { Act, PageNoun } from '../parts/resource.ts'
import { Sheet } from '../parts/sheet.tsx'
import { ago, dayOf, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

type WholeLanding = AnswerOf<'land.get'>

/** As git shortens it; the whole on being pointed at. */
export const Commit = ({ of }: { of: string }) => <code title={of}>{of.slice(0, 12)}</code>

const titleOf = ({ task_id, branch, id }: ListedLanding) =>
  tasks.get(task_id ?? '')?.title ?? branch ?? task_id ?? id

/** In line first, in the order in which they get there; then what is over, the newest first. */
function inOrder(a: ListedLanding, b: ListedLanding): number {
  const [x, y] = [a.ended_at === null, b.ended_at === null]
  if (x !== y) return x ? -1 : 1
  if (!x) return a.ended_at! < b.ended_at! ? 1 : -1
  if (a.project !== b.project) return a.project < b.project ? -1 : 1
  // What is being landed has no place in line any more.
  return (a.position ?? 0) - (b.position ?? 0) || (a.asked_at < b.asked_at ? -1 : 1)
}

export const landingResource: PageNoun<ListedLanding> = {
  one: 'landing',
  keyOf: ({ id }) => id,
  textOf: (each) => `${each.id} ${each.task_id} ${titleOf(each)} ${each.branch} ${each.reason}`,
  none: [
    'Nothing has been landed yet',
    'A landing brings a branch into its target: put on top of it, checked there, in order.',
  ],
  order: inOrder,
  filters: [
    { name: 'project', of: ({ project }) => project },
    {
      name: 'state',
      of: ({ status }) => status,
      choices: LANDING_STATUSES,
      says: (status) => LANDING_NAMES[status as ListedLanding['status']],
    },
  ],
  columns: [
    {
      name: 'Place',
      width: '2.5rem',
      wide: true,
      show: ({ position }) => <span class="number">{position}</span>,
    },
    { name: 'State', width: '7rem', show: ({ status }) => <LandingBadge status={status} /> },
    {
      name: 'What',
      width: 'minmax(9rem, 2fr)',
      show: (landing) => (
        <Opens id={landing.id}>
          {landing.task_id !== null && <span class="id">{landing.task_id}</span>}{' '}
          {void changed.value}
          {titleOf(landing)}
        </Opens>
      ),
    },
    {
      name: 'Onto',
      width: 'minmax(5rem, 1fr)',
      wide: true,
      show: ({ project, target }) => (
        <span class="dim">
          {project} → {ontoOf(target)}
        </span>
      ),
    },
    {
      name: 'Why',
      width: 'minmax(7rem, 2fr)',
      show: ({ reason, status }) =>
        reason !== null && (
          <span class={`why ${status === 'returned' ? 'is-bad' : 'dim'}`} title={reason}>
            {reason}
          </span>
        ),
    },
    {
      name: 'Since',
      width: '5.5rem',
      show: ({ asked_at, ended_at }) => (
        <span class="dim number">
          {ended_at === null ? span(secondsSince(asked_at, now.value)) : ago(ended_at, now.value)}
        </span>
      ),
    },
    {
      name: '_',
      width: '4rem',
      wide: true,
      show: (landing) => (
        <Acts kind="quiet" of={landing.status === 'waiting' ? [cancels(landing)] : []} />
      ),
    },
  ],
}

const cancels = (landing: ListedLanding): Act => ({
  says: 'Cancel',
  label: `Cancel landing ${landing.id}`,
  act: () => cancelLanding(landing),
})

/** One landing: where it stands, or why it came back, with what stood in its way. */
export function LandingSheet({ id }: { id: string }) {
  const asked = useAnswer('land.get', { id }, { affects: aboutBranches, every_ms: LOOK_MS })
  const landing = asked.value.value
  return (
    <Sheet
      label={`Landing ${id}`}
      title={`Landing ${id}`}
      badge={landing && <LandingBadge status={landing.status} />}
      refusal={asked.refusal.value}
      isLoading={!landing}
      first={landing && <LandingWhy landing={landing} label="Why" />}
      {...(landing && { facts: factsOf(landing), acts: actsOn(landing) })}
    />
  )
}

/** Why it waits or came back; the files in the way, and the end of what its check said. */
export function LandingWhy({ landing, label }: { landing: WholeLanding; label: string }) {
  const { id, status, reason, paths, output } = landing
  if (reason === null) return null
  return (
    <section class={status === 'returned' ? 'failure' : 'explain'} aria-label={label}>
      <strong>
        {label === 'Why' ? '' : `Landing ${id} came back: `}
        {reason}
      </strong>
      <Paths label="Files in the way" of={paths} />
      {output && (
        <pre tabIndex={0} aria-label="The end of what its check said">
          {output}
        </pre>
      )}
    </section>
  )
}

const PATHS_SHOWN = 20

export function Paths({ label, of }: { label: string; of: string[] }) {
  if (of.length === 0) return null
  return (
    <ul class="paths" aria-label={label}>
      {of.slice(0, PATHS_SHOWN).map((path) => (
        <li key={path}>
          <code>{path}</code>
        </li>
      ))}
      {of.length > PATHS_SHOWN && <li class="dim">and {of.length - PATHS_SHOWN} more</li>}
    </ul>
  )
}

function factsOf(landing: WholeLanding): ShownFact[] {
  const { task_id, branch, commit, base, candidate, position, asked_at, asked_by } = landing
  const { status, ended_at } = landing
  return [
    ['Task', task_id !== null && <a href={hrefOf('work', { id: task_id })}>{task_id}</a>],
    ['Branch', branch !== null && <code>{branch}</code>],
    ['Project', landing.project],
    ['Onto', ontoOf(landing.target)],
    ['Place in line', position !== null && String(position)],
    ['Priority', String(landing.priority)],
    ['Commit', commit !== null && <Commit of={commit} />],
    ['The target was', base !== null && <Commit of={base} />],
    [
      status === 'landed' ? 'The target became' : 'The target is to become',
      candidate !== null && <Commit of={candidate} />,
    ],
    ['Asked', `${dayOf(asked_at)} by ${asked_by}`],
    ['Ended', ended_at !== null && dayOf(ended_at)],
  ]
}

/** A task that came back is worked on again first; one that was cancelled is in review still. */
function actsOn(landing: WholeLanding): Act[] {
  const { status, task_id, branch, project, target } = landing
  if (status === 'waiting') return [{ ...cancels(landing), says: 'Cancel landing' }]
  const isAgain = task_id === null || tasks.get(task_id)?.status === 'review'
  const id = task_id ?? branch
  if (!isAgain || id === null || (status !== 'returned' && status !== 'cancelled')) return []
  return [{ says: 'Land again', act: () => landAgain({ id, project, onto: target }) }]
}
