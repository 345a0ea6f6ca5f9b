import { literalGlob, overlaps, parseGlob } from '../../core/paths/glob.ts'
import { isPattern } from '../../core/paths/glob_syntax.ts'
import { Refusal } from '../../core/refusal.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { pagesOf } from '../ask.ts'
import { useAsked } from '../data/asked.ts'
import { changed, running } from '../data/tasks.ts'
import { Acts } from '../parts/acts.tsx'
import { Answered, Trouble } from '../parts/frame.tsx'
import { AgentLink, TaskLink } from '../parts/links.tsx'
import { Countdown, releases } from '../resources/lock.tsx'
import { useWorktrees } from '../resources/worktree.tsx'
import { hrefOf, param } from '../route.ts'

type Reservation = AnswerOf<'reserve.list'>['items'][number]

const path = param('path', '')

/** Who has this file, by any glob that covers it; and who changes it, or means to. */
export function PathBox() {
  return (
    <div class="path-box">
      <input
        class="search"
        placeholder="Who has src/login/form.tsx?"
        aria-label="Who has this path"
        value={path.value}
        onInput={(event) => (path.value = event.currentTarget.value)}
      />
      {path.value.trim() !== '' && <PathAnswer path={path.value.trim()} />}
    </div>
  )
}

async function allReserved(signal: AbortSignal): Promise<Reservation[]> {
  const all: Reservation[] = []
  for await (const { items } of pagesOf('reserve.list', { limit: 1000 }, signal)) all.push(...items)
  return all
}

function PathAnswer({ path: asked }: { path: string }) {
  void changed.value
  const affects = ({ lock }: { lock: string | null }) => lock?.startsWith('path:') ?? false
  const reserved = useAsked('reserved', allReserved, { affects })
  const trees = useWorktrees()
  const glob = readGlob(asked)
  if (glob instanceof Refusal) return <Trouble refusal={glob} />
  const fits = (other: string) => overlaps(glob, parseGlob(other))
  const branches = (trees.value?.items ?? []).filter((tree) =>
    tree.changed.some((each) => fits(literalGlob(each))),
  )
  const means = running().filter(({ touches }) => touches.some(fits))
  return (
    <div class="panel path-answer" role="status" aria-label={`Who has ${asked}`}>
      <Answered of={reserved}>
        {(all) => {
          const held = all.filter((each) => fits(each.path))
          return held.length === 0 ? <p>Nobody has it reserved.</p> : <Holders of={held} />
        }}
      </Answered>
      <Answered of={trees}>
        {() => (
          <ul class="links">
            {branches.map(({ id, task_id }) => (
              <li key={id}>
                <span>
                  <TaskLink id={task_id} /> has changed it in worktree{' '}
                  <a href={hrefOf('who', { tab: 'worktrees', id })}>{id}</a>
                </span>
              </li>
            ))}
            {means.map(({ id }) => (
              <li key={id}>
                <span>
                  <TaskLink id={id} /> means to change it
                </span>
              </li>
            ))}
          </ul>
        )}
      </Answered>
    </div>
  )
}

/** What is no pattern is a path; what is no good one says why. */
function readGlob(asked: string) {
  try {
    return parseGlob(isPattern(asked) ? asked : literalGlob(asked))
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

const Holders = ({ of }: { of: Reservation[] }) => (
  <ul class="links">
    {of.map(({ fence, name, holder, path: glob, project, shared, reason }) => (
      <li key={fence}>
        <span>
          <strong>
            <AgentLink id={holder} />
          </strong>{' '}
          has <code>{glob}</code>
          {project !== null && ` of ${project}`}{' '}
          {reason !== null && <span class="dim">{reason}</span>}
        </span>
        <span class={shared ? 'tag' : 'tag is-warn'}>{shared ? 'shared' : 'exclusive'}</span>
        <Countdown name={name} />
        <Acts quiet of={[releases({ name, holder })]} />
      </li>
    ))}
  </ul>
)
