import { now } from '../data/asked.ts'
import {
  branchOf,
  type Fits,
  type ListedLanding,
  type LandingLine,
  linesIn,
  type Listed,
  ontoOf,
  type ListedWorktree,
} from '../data/branches.ts'
import { changed, tasks } from '../data/tasks.ts'
import { LandingBadge } from '../parts/badge.tsx'
import { Button } from '../parts/buttons.tsx'
import { Empty } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { ago, count, secondsSince, span } from '../parts/words.ts'
import { cancelLanding } from '../land_actions.ts'
import { adjust, hrefOf, route } from '../route.ts'
import { mayWork } from '../session.ts'

interface LandingsProps {
  listed: Listed<ListedLanding>
  trees: ListedWorktree[]
  fits: Fits
}

/** A line for each target, first the one that is landed next; below it what is over. */
export function Landings({ listed, trees, fits }: LandingsProps) {
  const found = listed.items.filter((each) => fits(each, each.status))
  if (listed.items.length === 0) {
    return (
      <Empty title="Nothing has been landed yet" command="leasehold land 42">
        A landing brings a branch into its target: put on top of it, checked there, in order. For
        projects with "land" in config.json.
      </Empty>
    )
  }
  const lines = linesIn(found)
  const over = found.filter(({ ended_at }) => ended_at !== null)
  return (
    <>
      {lines.map((line) => (
        <LineOf key={`${line.project} ${line.target}`} line={line} trees={trees} />
      ))}
      {linesIn(listed.items).length === 0 && (
        <p class="panel fine">
          <span>
            <Icon name="done" /> Nothing waits to be landed.
          </span>
        </p>
      )}
      {over.length > 0 && (
        <Panel title="Over" aside={<span class="number">{saysOver(over, listed)}</span>}>
          <ul class="rows" aria-label="Landings that are over">
            {over.map((each) => (
              <LandingRow key={each.id} landing={each} trees={trees} />
            ))}
          </ul>
        </Panel>
      )}
    </>
  )
}

const saysOver = (over: ListedLanding[], { isCut }: Listed<ListedLanding>) =>
  isCut ? `the newest ${over.length}` : String(over.length)

function LineOf({
  line: { project, target, items },
  trees,
}: {
  line: LandingLine
  trees: ListedWorktree[]
}) {
  const title = `${project} → ${ontoOf(target)}`
  return (
    <Panel title={title} aside={`${count(items.length, 'landing')} in line`}>
      <ol class="rows" aria-label={`In line for ${title}`}>
        {items.map((each) => (
          <LandingRow key={each.id} landing={each} trees={trees} />
        ))}
      </ol>
    </Panel>
  )
}

function LandingRow({ landing, trees }: { landing: ListedLanding; trees: ListedWorktree[] }) {
  void changed.value
  const { id, task_id, status, position, reason, asked_at, ended_at } = landing
  const branch = branchOf(landing, trees)
  const isOpen = route.value.params.get('id') === id
  const title = task_id === null ? branch : (tasks.get(task_id)?.title ?? branch)
  return (
    <li class={`row landing ${isOpen ? 'is-open' : ''}`}>
      <span class="landing-place number" title="Its place in line">
        {ended_at === null && (position ?? <Icon name="arrow" />)}
      </span>
      <span class="landing-state">
        <LandingBadge status={status} />
      </span>
      <div class="landing-what">
        <a
          data-id={id}
          href={hrefOf('branches', { id })}
          onClick={(event) => {
            event.preventDefault()
            adjust({ id })
          }}
        >
          {task_id !== null && <span class="id">{task_id}</span>} {title ?? id}
        </a>
        <span class="dim">{saysLanding(landing, branch)}</span>
        {reason !== null && (
          <span class={status === 'returned' ? 'landing-why is-bad' : 'landing-why'}>{reason}</span>
        )}
      </div>
      <span class="dim number landing-when" title={ended_at ?? asked_at}>
        {ended_at === null ? span(secondsSince(asked_at, now.value)) : ago(ended_at, now.value)}
      </span>
      {status === 'waiting' && mayWork() && (
        <Button kind="quiet" label={`Cancel landing ${id}`} act={() => cancelLanding(landing)}>
          Cancel
        </Button>
      )}
    </li>
  )
}

function saysLanding(landing: ListedLanding, branch: string | null): string {
  const { id, task_id, target, asked_by, ended_at } = landing
  // A branch that has no task is named above.
  const what = task_id !== null && branch !== null ? branch : id
  const where = ended_at !== null && target !== null ? ` → ${target}` : ''
  return `${what}${where}, asked by ${asked_by}`
}
