import { ask } from '../ask.ts'
import { aboutTask, type WholeTask } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { LOOK_MS, ontoOf } from '../data/branches.ts'
import { LandingBadge, WorktreeBadge } from '../parts/badge.tsx'
import { Facts, Panel } from '../parts/frame.tsx'
import { Commit } from '../resources/landing.tsx'
import { hrefOf } from '../route.ts'

/** Where its work is, and how far it got on its way to the target. */
export function TaskBranch({ task }: { task: WholeTask }) {
  const { id } = task
  const how = { affects: aboutTask(id), every_ms: LOOK_MS }
  const both = useAsked(
    `branch ${id}`,
    async (signal) => {
      const landings = await ask('land.list', { task_id: id, limit: 1 }, signal)
      const trees = await ask('worktree.list', { task_id: id }, signal)
      return { landing: landings.items[0], tree: trees.items.at(-1) }
    },
    how,
  )
  const { landing, tree } = both.value.value ?? {}
  if (!landing && !tree) return null
  return (
    <Panel
      title="Branch"
      aside={
        <span class="buttons">
          {tree && <WorktreeBadge state={tree.state} />}
          {landing && <LandingBadge status={landing.status} />}
        </span>
      }
    >
      <div class="sheet-body">
        <Facts
          of={[
            ['Branch', <code>{landing?.branch ?? tree?.branch}</code>],
            [
              'Landing',
              landing && (
                <a href={hrefOf('who', { tab: 'landings', id: landing.id })}>
                  {landing.id} onto {ontoOf(landing.target)}
                </a>
              ),
            ],
            [
              'Worktree',
              tree && <a href={hrefOf('who', { tab: 'worktrees', id: tree.id })}>{tree.id}</a>,
            ],
            ['Proved by', proofOf(task)],
            ['Saved as', tree?.salvage && <code>{tree.salvage.ref}</code>],
          ]}
        />
        {landing?.reason && landing.status !== 'landed' && (
          <p class={landing.status === 'returned' ? 'is-bad' : 'dim'}>{landing.reason}</p>
        )}
      </div>
    </Panel>
  )
}

/** The commit at which its check passed; what an agent wrote there itself may have any shape. */
function proofOf({ metadata, status }: WholeTask) {
  const { proof } = metadata as { proof?: { commit?: unknown } }
  const commit = proof?.commit
  return status === 'done' && typeof commit === 'string' && <Commit of={commit} />
}
