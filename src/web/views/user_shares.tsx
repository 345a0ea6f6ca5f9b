import { editLimit, pauseQueue, releaseUser } from '../actions.ts'
import type { QueueStatus } from '../data/about.ts'
import { Empty } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { isAdmin } from '../session.ts'

const SHOWN_MAX = 50

interface Share {
  user: string
  waiting: number
  runs: number
  task_id: string | null
  paused: boolean
}

/** Who waits with how much, and who has a turn now: the shortest queue is not always the next. */
export function UserShares({ status }: { status: QueueStatus }) {
  const shares = sharesIn(status)
  const most = Math.max(1, ...shares.map(({ waiting, runs }) => waiting + runs))
  return (
    <Panel title="Queue by user" aside={<span class="number">{shares.length}</span>}>
      {shares.length === 0 ? (
        <Empty title="No queue yet" command='leasehold queue add "Fix it" --project web --user ada'>
          Each user has one queue; users take turns by fair share, whatever the length.
        </Empty>
      ) : (
        <ul class="rows">
          {shares.slice(0, SHOWN_MAX).map((share) => (
            <UserShare key={share.user} share={share} most={most} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function sharesIn({ pending, active, user_locks, paused_users }: QueueStatus): Share[] {
  const users = new Set([...Object.keys(pending.by_user), ...Object.keys(active.by_user)])
  const shares = [...users].map((user) => ({
    user,
    waiting: pending.by_user[user] ?? 0,
    runs: active.by_user[user] ?? 0,
    task_id: user_locks.details.find((each) => each.user === user)?.task_id ?? null,
    paused: paused_users.includes(user),
  }))
  return shares.toSorted((a, b) => b.waiting + b.runs - a.waiting - a.runs)
}

function UserShare({ share, most }: { share: Share; most: number }) {
  const { user, waiting, runs, task_id, paused } = share
  const width = (n: number) => `${(n / most) * 100}%`
  return (
    <li class="row share">
      <span class="share-name">{user || '(no user)'}</span>
      <span class="share-bar" role="img" aria-label={`${runs} running, ${waiting} waiting`}>
        <span class="share-runs" style={{ width: width(runs) }} />
        <span class="share-waits" style={{ width: width(waiting) }} />
      </span>
      <span class="dim number">
        {runs} running · {waiting} waiting{paused ? ' · paused' : ''}
      </span>
      {isAdmin() && user && (
        <span class="share-actions">
          <button
            type="button"
            class="button is-quiet"
            aria-label={`${paused ? 'Resume' : 'Pause'} ${user}`}
            onClick={() => pauseQueue(!paused, { user })}
          >
            {paused ? 'Resume' : 'Pause'}
          </button>
          <button
            type="button"
            class="button is-quiet"
            aria-label={`Edit limit of ${user}`}
            onClick={() => editLimit({ user }, null)}
          >
            Limit
          </button>
          {runs > 0 && (
            <button
              type="button"
              class="button is-quiet"
              aria-label={`Release user ${user}`}
              onClick={() => releaseUser(user, task_id)}
            >
              Release
            </button>
          )}
        </span>
      )}
    </li>
  )
}
