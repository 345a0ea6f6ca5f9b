import {
  addLimit,
  editLimit,
  editWeight,
  type Limited,
  pauseQueue,
  releaseUser,
} from '../actions.ts'
import { clock } from '../ask.ts'
import { aboutQueue, type QueueAnswer } from '../data/about.ts'
import { useAnswer } from '../data/asked.ts'
import { SHARE_SECONDS, sharesIn, type ShownShare } from '../data/shares.ts'
import { Acts } from '../parts/buttons.tsx'
import { Answered, Empty } from '../parts/empty.tsx'
import { Page, Panel } from '../parts/frame.tsx'
import type { Act } from '../parts/resource.ts'
import { isAdmin } from '../session.ts'

const LOOK_MS = 60_000
const SHOWN_MAX = 50

/** What is seldom looked at: what may run at once, and who counts how much. */
export function Settings() {
  const queue = useAnswer('queue.status', {}, { affects: aboutQueue })
  return (
    <Page title="Settings">
      <Answered of={queue}>
        {(status) => (
          <div class="columns">
            <UserShares status={status} />
            <Limits status={status} />
          </div>
        )}
      </Answered>
    </Page>
  )
}

interface Row {
  name: string
  what: Limited
  max: number | null
  used: number
  paused: boolean
}

/** What may run at once: in all, of a project, of a group. Those of users are with their queues. */
function Limits({ status }: { status: QueueAnswer }) {
  return (
    <Panel
      title="Limits"
      aside={<Acts kind="quiet" of={[{ says: 'Limit a group', admin: true, act: addLimit }]} />}
    >
      <ul class="rows">
        {rowsIn(status).map(({ name, what, max, used, paused }) => (
          <li key={name} class="line">
            <span class="grows">{name}</span>
            <span class={max !== null && used >= max ? 'number is-warn' : 'dim number'}>
              {max === null ? `${used} running, no limit` : `${used} of ${max}`}
              {paused ? ' · paused' : ''}
            </span>
            <Acts kind="quiet" of={limitActs({ name, what, max, used, paused })} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function limitActs({ name, what, max, paused }: Row): Act[] {
  const { project } = what
  const pause = (each: string): Act => ({
    ...says(paused ? 'Resume' : 'Pause', name),
    act: () => pauseQueue(!paused, { project: each }),
  })
  return [
    ...(project === undefined ? [] : [pause(project)]),
    { ...says('Limit', `of ${name}`), act: () => editLimit(what, max) },
  ]
}

/** Whom it is done to is said to those who do not see the row. */
const says = (verb: string, of: string) => ({ says: verb, label: `${verb} ${of}`, admin: true })

/** Every project that is served is here, with or without a limit: it can be given one. */
function rowsIn({ pool, limits, dispatchers }: QueueAnswer): Row[] {
  const known = limits.map(({ project, group, ...rest }): Row => {
    if (project === null) return { name: `group ${group}`, what: { group: group! }, ...rest }
    return { name: `project ${project}`, what: { project }, ...rest }
  })
  const names = new Set(known.map(({ name }) => name))
  const others = [...new Set(dispatchers.flatMap(({ projects }) => projects))]
    .filter((project) => !names.has(`project ${project}`))
    .map((project): Row => {
      return { name: `project ${project}`, what: { project }, max: null, used: 0, paused: false }
    })
  const rest = [...known, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return [{ name: 'pool', what: {}, ...pool, paused: false }, ...rest]
}

/** Who waits with how much, what each got lately, and what would be fair now. */
function UserShares({ status }: { status: QueueAnswer }) {
  const stats = useAnswer(
    'stats.get',
    { since_seconds: SHARE_SECONDS },
    { affects: ({ type }) => type === 'run.ended', every_ms: LOOK_MS },
  )
  const shares = sharesIn(status, stats.value.value?.fairness, clock())
  return (
    <Panel title="Queue by user" aside={<span class="number">{shares.length}</span>}>
      {shares.length === 0 ? (
        <Empty title="No queue yet">
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
          {shares.length > SHOWN_MAX && <p class="dim pad">and {shares.length - SHOWN_MAX} more</p>}
        </>
      )}
    </Panel>
  )
}

const percent = (part: number) => `${Math.round(part * 100)} %`

function UserShare({ share }: { share: ShownShare }) {
  const { user, weight, running, pending, paused, got, fair_share: fair } = share
  const told = `got ${got === null ? 'nothing yet' : percent(got)}, fair ${percent(fair)}`
  return (
    <li class="share">
      <span class="grows">{user || '(no user)'}</span>
      {isAdmin() && user && <Acts kind="quiet" of={shareActs(share)} />}
      <span class="share-bar" role="img" aria-label={`${user || 'no user'} ${told}`}>
        <span class="share-got" style={{ width: `${(got ?? 0) * 100}%` }} />
        <span class="share-fair" style={{ left: `${fair * 100}%` }} />
      </span>
      <span class="dim grows">
        weight {weight} · {running} running · {pending} waiting{paused ? ' · paused' : ''}
      </span>
      <span class="dim number">{told}</span>
    </li>
  )
}

function shareActs({ user, paused, running, weight, max, task_id }: ShownShare): Act[] {
  return [
    { ...says(paused ? 'Resume' : 'Pause', user), act: () => pauseQueue(!paused, { user }) },
    { ...says('Weight', `of ${user}`), act: () => editWeight(user, weight) },
    { ...says('Limit', `of ${user}`), act: () => editLimit({ user }, max) },
    ...(running > 0
      ? [{ ...says('Release', `user ${user}`), act: () => releaseUser(user, task_id) }]
      : []),
  ]
}
