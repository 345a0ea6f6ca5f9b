import { literalGlob, overlaps, parseGlob } from '../../core/paths/glob.ts'
import { isPattern } from '../../core/paths/glob_syntax.ts'
import { Refusal } from '../../core/refusal.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { useAnswer } from '../data/asked.ts'
import { useWorktrees } from '../data/branches.ts'
import { locks } from '../data/locks.ts'
import { running } from '../data/tasks.ts'
import { Tag } from '../parts/badge.tsx'
import { Acts } from '../parts/buttons.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { releases } from '../resources/lock.tsx'
import { TaskLink } from '../resources/task.tsx'
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

/** Whether two globs, or paths, have a file in common. */
function fitsTo(asked: string): (other: string) => boolean {
  const glob = parseGlob(asked)
  return (other) => overlaps(glob, parseGlob(other))
}

function PathAnswer({ path: asked }: { path: string }) {
  const reserved = useAnswer(
    'reserve.list',
    { limit: 1000 },
    { affects: ({ lock }) => lock?.startsWith('path:') ?? false },
  )
  const trees = useWorktrees().value.value?.items ?? []
  const all = reserved.value.value?.items
  let found: { held: Reservation[]; branches: typeof trees; means: ReturnType<typeof running> }
  try {
    const fits = fitsTo(isPattern(asked) ? asked : literalGlob(asked))
    found = {
      held: (all ?? []).filter((each) => fits(each.path)),
      branches: trees.filter(({ changed }) => changed.some((each) => fits(literalGlob(each)))),
      means: running().filter(({ touches }) => touches.some(fits)),
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return <Trouble refusal={error} />
  }
  const { held, branches, means } = found
  return (
    <div class="panel path-answer" role="status" aria-label={`Who has ${asked}`}>
      <Trouble refusal={reserved.refusal.value} />
      {!all && !reserved.refusal.value && <Loading />}
      {all && held.length === 0 && <p>Nobody has it reserved.</p>}
      <ul class="links">
        {held.map((each) => (
          <Holder key={each.fence} of={each} />
        ))}
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
    </div>
  )
}

function Holder({
  of: { holder, path: glob, project, shared, reason, name },
}: {
  of: Reservation
}) {
  const lock = locks.get(name)
  return (
    <li>
      <span>
        <a href={hrefOf('who', { id: holder })}>
          <strong>{holder}</strong>
        </a>{' '}
        has <code>{glob}</code>
        {project !== null && ` of ${project}`}{' '}
        {reason !== null && <span class="dim">{reason}</span>}
      </span>
      <Tag tone={shared ? '' : 'is-warn'}>{shared ? 'shared' : 'exclusive'}</Tag>
      <Countdown name={name} />
      {lock && <Acts kind="quiet" of={[releases(lock)]} />}
    </li>
  )
}
