import { nameOfHost, WORKTREE_STATES } from '../../core/queue/rows.ts'
import { landAgain } from '../actions.ts'
import { aboutBranches } from '../data/about.ts'
import { now, useAnswer } from '../data/asked.ts'
import type { ListedWorktree } from '../data/branches.ts'
import { changed, tasks } from '../data/tasks.ts'
import { StatusBadge, Tag, WorktreeBadge } from '../parts/badge.tsx'
import type { ShownFact } from '../parts/frame.tsx'
import { Opens } from '../parts/opens.tsx'
import type { Act, PageNoun } from '../parts/resource.ts'
import { Section, Sheet } from '../parts/sheet.tsx'
import { ago, count, dayOf, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { Commit, Paths } from './landing.tsx'
import { TaskLink } from './task.tsx'

const titleOf = ({ task_id, branch }: ListedWorktree) => tasks.get(task_id)?.title ?? branch

export const worktreeResource: PageNoun<ListedWorktree> = {
  one: 'worktree',
  keyOf: ({ id }) => id,
  textOf: (tree) => `${tree.id} ${tree.task_id} ${titleOf(tree)} ${tree.branch}`,
  none: ['No run has a worktree', 'Each run of a project that is set so works in a folder apart.'],
  filters: [
    { name: 'project', of: ({ project }) => project },
    { name: 'state', of: ({ state }) => state, choices: WORKTREE_STATES },
  ],
  columns: [
    { name: 'State', width: '5.5rem', show: ({ state }) => <WorktreeBadge state={state} /> },
    {
      name: 'What',
      width: 'minmax(9rem, 2fr)',
      show: (tree) => (
        <Opens id={tree.id}>
          <span class="id">{tree.id}</span> {void changed.value}
          {titleOf(tree)}
        </Opens>
      ),
    },
    {
      name: 'Branch',
      width: 'minmax(6rem, 1.2fr)',
      show: ({ branch, host }) => (
        <span class="dim">
          {branch} on {nameOfHost(host)}
        </span>
      ),
    },
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
          {salvage !== null && <Tag tone="is-warn">saved</Tag>}{' '}
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
  const asked = useAnswer('worktree.get', { id }, { affects: aboutBranches })
  const tree = asked.value.value
  return (
    <Sheet
      label={`Worktree ${id}`}
      title={`Worktree ${id}`}
      badge={tree && <WorktreeBadge state={tree.state} />}
      refusal={asked.refusal.value}
      isLoading={!tree}
      first={tree && <p class="explain">{saysTree(tree)}</p>}
      {...(tree && { facts: factsOf(tree), acts: actsOn(tree) })}
    >
      {tree && tree.changed.length > 0 && (
        <Section title="Changed since its branch began">
          <Paths label="Changed since its branch began" of={tree.changed} />
        </Section>
      )}
      {tree && tree.overlaps.length > 0 && (
        <Section title="May conflict with">
          <ul class="links">
            {tree.overlaps.map(({ task_id, status, paths }) => (
              <li key={task_id}>
                <span>
                  <TaskLink id={task_id} /> in {paths.join(', ')}
                </span>
                <StatusBadge status={status} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {tree?.salvage && tree.salvage.left_out.length > 0 && (
        <Section title="Not saved">
          <Paths label="Not saved" of={tree.salvage.left_out} />
        </Section>
      )}
    </Sheet>
  )
}

/** A task in review is done by its landing; any other branch is landed for itself. */
function actsOn({ is_over, task_id, branch, project }: ListedWorktree): Act[] {
  if (!is_over) return []
  const id = tasks.get(task_id)?.status === 'review' ? task_id : branch
  return [{ says: 'Land its branch', act: () => landAgain({ id, project }) }]
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
