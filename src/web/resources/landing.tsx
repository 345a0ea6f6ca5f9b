import { LANDING_STATUSES } from '../../core/landing/rows.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask, change } from '../ask.ts'
import { aboutAny, now, useAnswer, useAsked } from '../data/asked.ts'
import { tasks } from '../data/tasks.ts'
import { type Act, Acts, does } from '../parts/acts.tsx'
import { Badge, nameOf } from '../parts/badge.tsx'
import { Answered, Facts, Sheet, type ShownFact } from '../parts/frame.tsx'
import { Opens, TaskLink, Title } from '../parts/links.tsx'
import { dim, type PageNoun } from '../parts/noun.tsx'
import { ago, dayOf, secondsSince, span } from '../parts/words.ts'
import { projectsKnown } from './task_acts.ts'

export type ListedLanding = AnswerOf<'land.list'>['items'][number]
type WholeLanding = AnswerOf<'land.get'>

/** That a lander has taken a landing, or put it back, leaves no event. */
export const LOOK_MS = 3_000
export const aboutBranches = { affects: aboutAny('landing', 'worktree', 'run'), every_ms: LOOK_MS }
const LANDINGS_MAX = 200

/** The newest landings, and all that are not over, however old. */
export const useLandings = () =>
  useAsked(
    'landings',
    async () => {
      const { items, next } = await ask('land.list', { limit: LANDINGS_MAX })
      if (next === null) return { items, isCut: false }
      const open = await Promise.all(
        (['landing', 'waiting'] as const).map((status) =>
          ask('land.list', { status, limit: 1000 }),
        ),
      )
      const all = [...items, ...open.flatMap((page) => page.items)]
      return { items: [...new Map(all.map((each) => [each.id, each])).values()], isCut: true }
    },
    aboutBranches,
  )

export const ontoOf = (target: string | null) => (target === null ? 'only checked' : target)

/** As git shortens it; the whole on being pointed at. */
export const Commit = ({ of }: { of: string }) => <code title={of}>{of.slice(0, 12)}</code>

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
  textOf: ({ id, task_id, branch, reason }) =>
    `${id} ${task_id} ${tasks.get(task_id ?? '')?.title} ${branch} ${reason}`,
  none: [
    'Nothing has been landed yet',
    'A landing brings a branch into its target: put on top of it, checked there, in order.',
  ],
  order: inOrder,
  filters: [
    { name: 'project', of: ({ project }) => project },
    { name: 'state', of: ({ status }) => status, choices: LANDING_STATUSES, says: nameOf },
  ],
  columns: [
    {
      name: 'Place',
      width: '2.5rem',
      wide: true,
      show: ({ position }) => <span class="number">{position}</span>,
    },
    { name: 'State', width: '7rem', show: ({ status }) => <Badge of={status} /> },
    {
      name: 'What',
      width: 'minmax(9rem, 2fr)',
      show: ({ id, task_id, branch }) => (
        <Opens id={id}>
          {task_id !== null && <span class="id">{task_id}</span>}{' '}
          <Title id={task_id} or={branch ?? task_id ?? id} />
        </Opens>
      ),
    },
    dim({ name: 'Onto', width: 'minmax(5rem, 1fr)', wide: true }, ({ project, target }) => {
      return `${project} → ${ontoOf(target)}`
    }),
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
      show: (landing) => <Acts quiet of={landing.status === 'waiting' ? [cancels(landing)] : []} />,
    },
  ],
}

function cancels({ id, task_id, target }: ListedLanding): Act {
  const from = target === null ? 'It is not checked.' : `It leaves the line for ${target}.`
  const after = task_id === null ? 'Its branch stays as it is.' : `Task ${task_id} stays in review.`
  return {
    says: 'Cancel',
    label: `Cancel landing ${id}`,
    verb: 'Cancel landing',
    kind: 'danger',
    will: [from, after],
    run: does('land.cancel', { id }, `Landing ${id} was cancelled`),
  }
}

const WILL = [
  'It is put on top of its target, checked there, and only then does the target move.',
  'If it conflicts or its check fails, nothing changes, and its task comes back with the reason.',
]

async function land(id: string, project: string, onto?: string | null): Promise<string> {
  const more = { ...(project && { project }), ...(onto && { onto }) }
  return (await change('land.add', { id, ...more })).note
}

/** A task that is in review, or a branch, which is known already. */
export const lands = (says: string, id: string, project: string, onto?: string | null): Act => ({
  says,
  verb: 'Land',
  will: WILL,
  run: () => land(id, project, onto),
})

export const LANDS_ANY: Act = {
  says: 'Land a branch',
  verb: 'Land',
  will: WILL,
  fields: [
    { label: 'Task or branch', initial: '' },
    { label: 'Project', initial: '', choices: projectsKnown },
  ],
  run: (id = '', project = '') => land(id.trim(), project),
}

/** One landing: where it stands, or why it came back, with what stood in its way. */
export function LandingSheet({ id }: { id: string }) {
  const asked = useAnswer('land.get', { id }, aboutBranches)
  return (
    <Sheet label={`Landing ${id}`} badge={asked.value && <Badge of={asked.value.status} />}>
      <Answered of={asked}>
        {(landing) => (
          <>
            <LandingWhy landing={landing} label="Why" />
            <Facts of={factsOf(landing)} />
            <Acts of={actsOn(landing)} />
          </>
        )}
      </Answered>
    </Sheet>
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
    <ul aria-label={label}>
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
    ['Task', task_id !== null && <TaskLink id={task_id} />],
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
  if (status === 'waiting') return [cancels(landing)]
  const isAgain = task_id === null || tasks.get(task_id)?.status === 'review'
  const id = task_id ?? branch
  if (!isAgain || id === null || (status !== 'returned' && status !== 'cancelled')) return []
  return [lands('Land again', id, project, target)]
}
