import type { ComponentChildren } from 'preact'
import { nameOfHost } from '../../core/queue/rows.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import { aboutBranches } from '../data/about.ts'
import { now, useAsked } from '../data/asked.ts'
import type { Fits, Listed, ListedWorktree } from '../data/branches.ts'
import { changed, tasks } from '../data/tasks.ts'
import { StatusBadge, Tag, WorktreeBadge } from '../parts/badge.tsx'
import { Button, IconButton } from '../parts/buttons.tsx'
import { CopyCommand } from '../parts/copy.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { Facts, Panel } from '../parts/frame.tsx'
import { ago, count, dayOf, secondsSince, span } from '../parts/words.ts'
import { landBranch } from '../land_actions.ts'
import { adjust, hrefOf, route } from '../route.ts'
import { mayWork } from '../session.ts'
import { Commit } from './landing_sheet.tsx'

/** Every worktree that a run has or had, in part or whole; the newest first. */
export function Worktrees({ listed, fits }: { listed: Listed<ListedWorktree>; fits: Fits }) {
  const { items, isCut } = listed
  if (items.length === 0) {
    return (
      <Empty title="No run has a worktree" command="leasehold worktree --help">
        With "worktrees" for a project in config.json, each of its runs works in a folder and on a
        branch of its own.
      </Empty>
    )
  }
  const found = items.filter((each) => fits(each, each.state))
  const says = `${isCut ? 'the oldest ' : ''}${count(found.length, 'worktree')}`
  return (
    <Panel title="Worktrees" aside={says}>
      <ul class="rows" aria-label="Worktrees">
        {found.map((each) => (
          <WorktreeRow key={each.id} tree={each} />
        ))}
      </ul>
    </Panel>
  )
}

function WorktreeRow({ tree }: { tree: ListedWorktree }) {
  void changed.value
  const { id, task_id, state, branch, begun_at, left_at, kept_because, salvage } = tree
  const isOpen = route.value.params.get('id') === id
  return (
    <li class={`row landing ${isOpen ? 'is-open' : ''}`}>
      <span class="landing-state">
        <WorktreeBadge state={state} />
      </span>
      <div class="landing-what">
        <a
          data-id={id}
          href={hrefOf('branches', { tab: 'worktrees', id })}
          onClick={(event) => {
            event.preventDefault()
            adjust({ id })
          }}
        >
          <span class="id">{id}</span> {tasks.get(task_id)?.title ?? branch}
        </a>
        <span class="dim">
          {branch} on {nameOfHost(tree.host)}
          {tree.changed.length > 0 && `, ${count(tree.changed.length, 'file')} changed`}
        </span>
        {kept_because !== null && <span class="landing-why">kept: {kept_because}</span>}
      </div>
      {salvage !== null && <Tag tone="is-waiting">saved</Tag>}
      <span class="dim number landing-when" title={left_at ?? begun_at}>
        {left_at === null ? span(secondsSince(begun_at, now.value)) : ago(left_at, now.value)}
      </span>
    </li>
  )
}

/** One worktree: whose it is, what is in it, and how to look at it where it is. */
export function WorktreeSheet({ id }: { id: string }) {
  const asked = useAsked(id, () => ask('worktree.get', { id }), { affects: aboutBranches })
  const tree = asked.value.value
  return (
    <aside class="panel sheet" aria-label={`Worktree ${id}`}>
      <header class="panel-head">
        <h2>Worktree {id}</h2>
        {tree && <WorktreeBadge state={tree.state} />}
        <IconButton icon="close" label="Close" act={() => adjust({ id: null })} />
      </header>
      <Trouble refusal={asked.refusal.value} />
      {tree && (
        <>
          <p class="explain">{standing(tree)}</p>
          <Facts of={factsOf(tree)} />
          <Paths title="Changed since its branch began" of={tree.changed} />
          <Overlaps of={tree.overlaps} />
          <Paths title="Not saved" of={tree.salvage?.left_out ?? []} />
          {tree.is_over && mayWork() && (
            <div class="buttons">
              <Button act={() => landBranch(workOf(tree))}>Land its branch</Button>
            </div>
          )}
          <h3>In a shell on {nameOfHost(tree.host)}</h3>
          <Commands tree={tree} />
        </>
      )}
    </aside>
  )
}

/** A task in review is done by its landing; any other branch is landed for itself. */
const workOf = ({ task_id, branch, project }: ListedWorktree) => {
  return { id: tasks.get(task_id)?.status === 'review' ? task_id : branch, project }
}

function standing({ state, run_id, is_over, kept_because, salvage }: ListedWorktree): string {
  if (state === 'making') return `It is being made for run ${run_id}.`
  if (state === 'removing') return 'It is being removed: all of it is kept elsewhere.'
  if (!is_over) return `Run ${run_id} works in it.`
  if (kept_because !== null) return `It is kept: ${kept_because}.`
  const saved = salvage ? ' What it left uncommitted is saved as a commit.' : ''
  return `Run ${run_id} is over.${saved} It goes by age, once another ref has all of it.`
}

function factsOf(tree: ListedWorktree): [string, ComponentChildren][] {
  const { task_id, run_id, base, salvage, left_at } = tree
  return [
    ['Task', <a href={hrefOf('tasks', { id: task_id })}>{task_id}</a>],
    ['Run', <a href={hrefOf('tasks', { id: task_id, run: run_id })}>{run_id}</a>],
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

const PATHS_SHOWN = 20

function Paths({ title, of }: { title: string; of: string[] }) {
  if (of.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <ul class="paths" aria-label={title}>
        {of.slice(0, PATHS_SHOWN).map((path) => (
          <li key={path}>
            <code>{path}</code>
          </li>
        ))}
        {of.length > PATHS_SHOWN && <li class="dim">and {of.length - PATHS_SHOWN} more</li>}
      </ul>
    </>
  )
}

/** Foreseen: tasks on their way that change the same paths. */
function Overlaps({ of }: { of: AnswerOf<'worktree.get'>['overlaps'] }) {
  if (of.length === 0) return null
  return (
    <>
      <h3>May conflict with</h3>
      <ul class="links" aria-label="May conflict with">
        {of.map(({ task_id, status, paths }) => (
          <li key={task_id}>
            <a href={hrefOf('tasks', { id: task_id })}>
              <span class="id">{task_id}</span> in {paths.join(', ')}
            </a>
            <StatusBadge status={status} />
          </li>
        ))}
      </ul>
    </>
  )
}

function Commands({ tree: { id, is_over, salvage } }: { tree: ListedWorktree }) {
  return (
    <ul class="copies">
      <CopyCommand says="What it has changed" command={`leasehold worktree diff ${id}`} />
      {salvage && <CopyCommand says="What was saved" command={`git show --stat ${salvage.ref}`} />}
      {is_over && (
        <>
          <CopyCommand
            says="Save all of it, its commits too"
            command={`leasehold worktree salvage ${id}`}
          />
          <CopyCommand
            says="Remove it, if nothing would be lost"
            command={`leasehold worktree remove ${id}`}
          />
        </>
      )}
    </ul>
  )
}
