import { editLimit, editWeight, pauseQueue, releaseUser } from '../actions.ts'
import { clock } from '../ask.ts'
import type { QueueAnswer, StatsAnswer } from '../data/about.ts'
import { sharesIn, type ShownShare } from '../data/shares.ts'
import { Button } from '../parts/buttons.tsx'
import { Empty } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { isAdmin } from '../session.ts'

const SHOWN_MAX = 50
interface SharesProps {
  status: QueueAnswer
  stats: StatsAnswer | undefined
}

/** Who waits with how much, what each got lately, and what would be fair now. */
export function UserShares({ status, stats }: SharesProps) {
  const shares = sharesIn(status, stats?.fairness, clock())
  return (
    <Panel title="Queue by user" aside={<span class="number">{shares.length}</span>}>
      {shares.length === 0 ? (
        <Empty title="No queue yet" command='leasehold queue add "Fix it" --project web --user ada'>
          Each user has one queue; users take turns by fair share, whatever the length.
        </Empty>
      ) : (
        <>
          <p class="dim share-key">
            <span class="share-key-got" /> got in the last hour
            <span class="share-key-fair" /> fair by weight, among those who want something now
          </p>
          <ul class="rows">
            {shares.slice(0, SHOWN_MAX).map((share) => (
              <UserShare key={share.user} share={share} />
            ))}
          </ul>
          {shares.length > SHOWN_MAX && (
            <p class="dim pad">and {shares.length - SHOWN_MAX} more: leasehold queue status</p>
          )}
        </>
      )}
    </Panel>
  )
}

const percent = (part: number) => `${Math.round(part * 100)} %`

function UserShare({ share }: { share: ShownShare }) {
  const { user, weight, running, pending, paused, got, fair_share: fair } = share
  const says = `got ${got === null ? 'nothing yet' : percent(got)}, fair ${percent(fair)}`
  return (
    <li class="row share">
      <span class="share-name">{user || '(no user)'}</span>
      <span class="share-bar" role="img" aria-label={`${user || 'no user'} ${says}`}>
        <span class="share-got" style={{ width: `${(got ?? 0) * 100}%` }} />
        <span class="share-fair" style={{ left: `${fair * 100}%` }} />
      </span>
      <span class="dim">
        weight {weight} · {running} running · {pending} waiting{paused ? ' · paused' : ''}
      </span>
      <span class="dim number">{says}</span>
      {isAdmin() && user && <ShareActions share={share} />}
    </li>
  )
}

function ShareActions({ share: { user, paused, running, weight, max, task_id } }: ShareProps) {
  return (
    <span class="share-actions">
      <Action
        says={paused ? 'Resume' : 'Pause'}
        of={user}
        act={() => pauseQueue(!paused, { user })}
      />
      <Action says="Weight" of={`of ${user}`} act={() => editWeight(user, weight)} />
      <Action says="Limit" of={`of ${user}`} act={() => editLimit({ user }, max)} />
      {running > 0 && (
        <Action says="Release" of={`user ${user}`} act={() => releaseUser(user, task_id)} />
      )}
    </span>
  )
}

interface ShareProps {
  share: ShownShare
}

interface ActionProps {
  says: string
  /** Whom it is done to: said to those who do not see the row. */
  of: string
  act: () => void
}

export function Action({ says, of, act }: ActionProps) {
  return (
    <Button kind="quiet" label={`${says} ${of}`} act={act}>
      {says}
    </Button>
  )
}
