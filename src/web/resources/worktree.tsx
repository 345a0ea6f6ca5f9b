import { nameOfHost, WORKTREE_STATES } from '../../core/queue/rows.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import { now, useAnswer, useAsked } from '../data/asked.ts'
import { tasks } from '../data/tasks.ts'
import { type Act, Acts } from '../parts/acts.tsx'
import { Badge, nameOf } from '../parts/badge.tsx'
import { Answered, Facts, Section, Sheet, type ShownFact } from '../parts/frame.tsx'
import { Opens, TaskLink, Title } from '../parts/links.tsx'
import { dim, type PageNoun } from '../parts/noun.tsx'
import { ago, count, dayOf, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { aboutBranches, Commit, lands, Paths } from './landing.tsx'

export type ListedWorktree = AnswerOf<'worktree.list'>['items'][number]

const WORKTREES_MAX = 1_000

export const useWorktrees = () =>
  useAsked(
    'worktrees',
    async () => {
      const { items, next } = await ask('worktree.list', { limit: WORKTREES_MAX })
      return { items: items.toReversed(), isCut: next !== null }
    },
    aboutBranches,
  )

export const worktreeResource: PageNoun<ListedWorktree> = {
  one: 'worktree',
  keyOf: ({ id }) => id,
  textOf: ({ id, task_id, branch }) => `${id} ${task_id} ${tasks.get(task_id)?.title} ${branch}`,
  none: ['No run has a worktree', 'Each run of a project that is set so works in a folder apart.'],
  filters: [
    { name: 'project', of: ({ project }) => project },
    { name: 'state', of: ({ state }) => state, choices: WORKTREE_STATES, says: nameOf },
  ],
  columns: [
    { name: 'State', width: '5.5rem', show: ({ state }) => <Badge of={state} /> },
    {
      name: 'What',
      width: 'minmax(9rem, 2fr)',
      show: ({ id, task_id, branch }) => (
        <Opens id={id}>
          <span class="id">{id}</span> <Title id={task_id} or={branch} />
        </Opens>
      ),
    },
    dim({ name: 'Branch', width: 'minmax(6rem, 1.2fr)' }, ({ branch, host }) => {
      return `${branch} on ${nameOfHost(host)}`
    }),
    {
      name: 'Changed',
      width: '4.5rem',
      wide: true,
      order: (tree) => -tree.changed.length,
      show: (tree) => <span class="dim">{count(tree.changed.length, 'file')}</span>,
    },
    {
      name: 'Kept because',
      width: 'minmax(5rem, 1.4fr)',
      wide: true,
      show: ({ kept_because, salvage }) => (
        <>
          {salvage !== null && <span class="tag is-warn">saved</span>}{' '}
          {kept_because !== null && <span class="why dim">{kept_because}</span>}
        </>
      ),
    },
    {
      name: 'Since',
      width: '6.5rem',
      order: ({ begun_at }) => begun_at,
      show: ({ left_at, begun_at }) => (
        <span class="dim number">
          {left_at === null ? span(secondsSince(begun_at, now.value)) : ago(left_at, now.value)}
        </span>
      ),
    },
  ],
}

/** One worktree: whose it is, what is in it, and what may conflict with it. */
export function WorktreeSheet({ id }: { id: string }) {
  const asked = useAnswer('worktree.get', { id }, aboutBranches)
  return (
    <Sheet label={`Worktree ${id}`} badge={asked.value && <Badge of={asked.value.state} />}>
      <Answered of={asked}>
        {(tree) => (
          <>
            <p class="explain">{saysTree(tree)}</p>
            <Facts of={factsOf(tree)} />
            <Acts of={actsOn(tree)} />
            <Files title="Changed since its branch began" of={tree.changed} />
            <Section
              title="May conflict with"
              of={tree.overlaps.map(({ task_id, status, paths }) => (
                <li key={task_id}>
                  <span>
                    <TaskLink id={task_id} /> in {paths.join(', ')}
                  </span>
                  <Badge of={status} />
                </li>
              ))}
            />
            <Files title="Not saved" of={tree.salvage?.left_out ?? []} />
          </>
        )}
      </Answered>
    </Sheet>
  )
}

const Files = ({ title, of }: { title: string; of: string[] }) =>
  of.length > 0 && (
    <Section title={title}>
      <Paths label={title} of={of} />
    </Section>
  )

/** A task in review is done by its landing; any other branch is landed for itself. */
function actsOn({ is_over, task_id, branch, project }: ListedWorktree): Act[] {
  if (!is_over) return []
  const id = tasks.get(task_id)?.status === 'review' ? task_id : branch
  return [lands('Land its branch', id, project)]
}

function saysTree({ state, run_id, is_over, kept_because, salvage }: ListedWorktree): string {
  if (state === 'making') return `It is being made for run ${run_id}.`
  if (state === 'removing') return 'It is being removed: all of it is kept elsewhere.'
  if (!is_over) return `Run ${run_id} works in it.`
  if (kept_because !== null) return `It is kept: ${kept_because}.`
  const saved = salvage ? ' What it left uncommitted is saved as a commit.' : ''
  return `Run ${run_id} is over.${saved} It goes by age, once another ref has all of it.`
}

function factsOf(tree: ListedWorktree): ShownFact[] {
  const { task_id, run_id, base, salvage, left_at } = tree
  return [
    ['Task', <TaskLink id={task_id} />],
    ['Run', <a href={hrefOf('work', { id: task_id, run: run_id })}>{run_id}</a>],
    ['Branch', <code>{tree.branch}</code>],
    ['Began at', base !== null && <Commit of={base} />],
    ['Project', tree.project],
    ['Host', nameOfHost(tree.host)],
    ['Made', dayOf(tree.begun_at)],
    ['Left', left_at !== null && dayOf(left_at)],
    ['Saved as', salvage && <code>{salvage.ref}</code>],
    ['Path', <code>{tree.path}</code>],
  ]
}
