import type { ComponentChildren } from 'preact'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import { aboutBranches } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { branchOf, LOOK_MS, ontoOf, type ListedWorktree } from '../data/branches.ts'
import { tasks } from '../data/tasks.ts'
import { LandingBadge } from '../parts/badge.tsx'
import { Button, IconButton } from '../parts/buttons.tsx'
import { Trouble } from '../parts/empty.tsx'
import { Facts } from '../parts/frame.tsx'
import { dayOf } from '../parts/words.ts'
import { cancelLanding, landBranch } from '../land_actions.ts'
import { adjust, hrefOf } from '../route.ts'
import { mayWork } from '../session.ts'

type WholeLanding = AnswerOf<'land.get'>

/** One landing: where it stands, or why it came back, with what stood in its way. */
export function LandingSheet({ id, trees }: { id: string; trees: ListedWorktree[] }) {
  const asked = useAsked(id, () => ask('land.get', { id }), {
    affects: aboutBranches,
    every_ms: LOOK_MS,
  })
  const landing = asked.value.value
  return (
    <aside class="panel sheet" aria-label={`Landing ${id}`}>
      <header class="panel-head">
        <h2>Landing {id}</h2>
        {landing && <LandingBadge status={landing.status} />}
        <IconButton icon="close" label="Close" act={() => adjust({ id: null })} />
      </header>
      <Trouble refusal={asked.refusal.value} />
      {landing && (
        <>
          <Why landing={landing} />
          <Facts of={factsOf(landing, branchOf(landing, trees))} />
          <Actions landing={landing} />
        </>
      )}
    </aside>
  )
}

/** Why it waits or came back; the files in the way, and the end of what its check said. */
function Why({ landing: { status, reason, paths, output } }: { landing: WholeLanding }) {
  if (reason === null) return null
  return (
    <section class={status === 'returned' ? 'failure' : 'explain'} aria-label="Why">
      <strong>{reason}</strong>
      {paths.length > 0 && (
        <ul class="paths" aria-label="Files in the way">
          {paths.map((path) => (
            <li key={path}>
              <code>{path}</code>
            </li>
          ))}
        </ul>
      )}
      {output && (
        <pre tabIndex={0} aria-label="The end of what its check said">
          {output}
        </pre>
      )}
    </section>
  )
}

/** As git shortens it; the whole on being pointed at. */
export const Commit = ({ of }: { of: string }) => <code title={of}>{of.slice(0, 12)}</code>

function factsOf(landing: WholeLanding, branch: string | null): [string, ComponentChildren][] {
  const { task_id, commit, base, candidate, position, asked_at, asked_by } = landing
  const { status, ended_at } = landing
  return [
    ['Task', task_id !== null && <a href={hrefOf('tasks', { id: task_id })}>{task_id}</a>],
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
function Actions({ landing }: { landing: WholeLanding }) {
  const { status, task_id, branch, project, target } = landing
  if (!mayWork()) return null
  if (status === 'waiting') {
    return (
      <div class="buttons">
        <Button kind="danger-quiet" act={() => cancelLanding(landing)}>
          Cancel landing
        </Button>
      </div>
    )
  }
  const isAgain = task_id === null || tasks.get(task_id)?.status === 'review'
  const id = task_id ?? branch
  if (!isAgain || id === null || (status !== 'returned' && status !== 'cancelled')) return null
  return (
    <div class="buttons">
      <Button act={() => landBranch({ id, project, onto: target })}>Land again</Button>
    </div>
  )
}
