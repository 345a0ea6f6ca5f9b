import type { ComponentChildren } from 'preact'
import { ask } from '../ask.ts'
import { aboutTask, type WholeTask } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { LOOK_MS, ontoOf } from '../data/branches.ts'
import { LandingBadge, WorktreeBadge } from '../parts/badge.tsx'
import { Facts, Panel } from '../parts/frame.tsx'
import { hrefOf } from '../route.ts'
import { Commit } from './landing_sheet.tsx'

/** Where its work is, and how far it got on its way to the target. */
export function TaskBranch({ task }: { task: WholeTask }) {
  const { id } = task
  const how = { affects: aboutTask(id), every_ms: LOOK_MS }
  const landings = useAsked(`landing ${id}`, () => ask('land.list', { task_id: id, limit: 1 }), how)
  const trees = useAsked(`tree ${id}`, () => ask('worktree.list', { task_id: id }), how)
  const landing = landings.value.value?.items[0]
  const tree = trees.value.value?.items.at(-1)
  if (!landing && !tree) return null
  const facts: [string, ComponentChildren][] = [
    ['Branch', <code>{landing?.branch ?? tree?.branch}</code>],
    [
      'Landing',
      landing && (
        <a href={hrefOf('branches', { id: landing.id })}>
          {landing.id} onto {ontoOf(landing.target)}
        </a>
      ),
    ],
    [
      'Worktree',
      tree && <a href={hrefOf('branches', { tab: 'worktrees', id: tree.id })}>{tree.id}</a>,
    ],
    ['Proved by', proofOf(task)],
    ['Saved as', tree?.salvage && <code>{tree.salvage.ref}</code>],
  ]
  return (
    <Panel
      title="Branch"
      class="details"
      aside={
        <>
          {tree && <WorktreeBadge state={tree.state} />}{' '}
          {landing && <LandingBadge status={landing.status} />}
        </>
      }
    >
      <Facts of={facts} />
      {landing?.reason && landing.status !== 'landed' && (
        <p class={landing.status === 'returned' ? 'landing-why is-bad' : 'landing-why'}>
          {landing.reason}
        </p>
      )}
    </Panel>
  )
}

/** The commit at which its check passed; what an agent wrote there itself may have any shape. */
function proofOf({ metadata, status }: WholeTask): ComponentChildren {
  const { proof } = metadata as { proof?: { commit?: unknown } }
  const commit = proof?.commit
  return status === 'done' && typeof commit === 'string' && <Commit of={commit} />
}
