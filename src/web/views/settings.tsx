import type { AnswerOf } from '../../operations/registry.ts'
import { change, clock } from '../ask.ts'
import { aboutAny, useAnswer } from '../data/asked.ts'
import { type Act, Acts, does, numberIn } from '../parts/acts.tsx'
import { Answered, Empty, Page, Panel } from '../parts/frame.tsx'
import { Rows } from '../parts/list.tsx'
import { percent, secondsSince } from '../parts/words.ts'

export type QueueAnswer = AnswerOf<'queue.status'>

/** How far back it is looked for what was done, and for what a user got. */
const HOUR_SECONDS = 3600
const LOOK_MS = 60_000
const SHOWN_MAX = 50

export const useQueue = () =>
  useAnswer(
    'queue.status',
    {},
    { affects: aboutAny('task', 'run', 'queue', 'dispatcher', 'lease') },
  )

export const useHour = (type: string) =>
  useAnswer(
    'stats.get',
    { since_seconds: HOUR_SECONDS },
    { affects: (event) => event.type === type, every_ms: LOOK_MS },
  )

/** What is seldom looked at: what may run at once, and who counts how much. */
export const Settings = () => (
  <Page title="Settings">
    <Answered of={useQueue()}>
      {(status) => (
        <div class="columns">
          <Shares status={status} />
          <Limits status={status} />
        </div>
      )}
    </Answered>
  </Page>
)

interface Limited {
  project?: string
  group?: string
  user?: string
}

/** `project web`; nothing is the whole. */
const nameOf = (what: Limited, whole: string) =>
  Object.entries(what)
    .map((each) => each.join(' '))
    .join() || whole

export function pauses(isPaused: boolean, what: Limited = {}): Act {
  const of = nameOf(what, 'the queue')
  const says = isPaused ? 'Resume' : 'Pause'
  return {
    says: of === 'the queue' ? `${says} the queue` : says,
    label: `${says} ${of}`,
    admin: true,
    will: isPaused
      ? ['Waiting tasks are started again, in their turn.']
      : ['Nothing more is started. What runs goes on.', 'New tasks wait until it is resumed.'],
    run: does(isPaused ? 'queue.resume' : 'queue.pause', what, `${says}d ${of}`),
  }
}

const WILL = [
  'So many of its tasks may run at once. Empty takes the limit away.',
  'What runs already goes on. The limit holds until config.json is read again.',
]

async function setLimit(what: Limited, said: string): Promise<string> {
  const max = said.trim() === '' ? null : numberIn(said)
  await change('queue.limit', { ...what, max })
  const of = nameOf(what, 'the pool')
  return max === null ? `No limit for ${of} any more` : `At most ${max} at once for ${of}`
}

const limits = (what: Limited, max: number | null): Act => ({
  says: 'Limit',
  label: `Limit of ${nameOf(what, 'pool')}`,
  verb: 'Set limit',
  admin: true,
  will: WILL,
  fields: [{ label: 'At most', initial: max === null ? '' : String(max), type: 'number' }],
  run: (said = '') => setLimit(what, said),
})

/** For a group that nothing runs of yet; every project is listed with its limit. */
const LIMITS_GROUP: Act = {
  says: 'Limit a group',
  verb: 'Set limit',
  admin: true,
  will: WILL,
  fields: [
    { label: 'Group', initial: '' },
    { label: 'At most', initial: '1', type: 'number' },
  ],
  run: (group = '', said = '') => setLimit({ group }, said),
}

const weighs = (user: string, weight: number): Act => ({
  says: 'Weight',
  label: `Weight of ${user}`,
  verb: 'Set weight',
  admin: true,
  will: [
    'A user of weight 2 gets twice the time of one of weight 1, when both have tasks waiting.',
    'It counts from the next start on, until config.json is read again.',
  ],
  fields: [{ label: 'Weight', initial: String(weight), type: 'number' }],
  run: async (said = '') => {
    await change('queue.limit', { user, weight: numberIn(said) })
    return `${user} has the weight ${numberIn(said)} now`
  },
})

const releasesUser = (user: string, task_id: string | undefined): Act => ({
  says: 'Release',
  label: `Release user ${user}`,
  kind: 'danger',
  verb: 'Cancel and release',
  admin: true,
  will: [
    `What runs for ${user} is cancelled: its command is stopped, then its locks are free.`,
    `The next task of ${user} may start.`,
  ],
  run: does(
    'queue.release_user',
    { user, ...(task_id !== undefined && { task_id }) },
    `${user} is free`,
  ),
})

/** What may run at once: in all, of a project, of a group. Every project that is served is here. */
function Limits({ status: { pool, limits: known, dispatchers } }: { status: QueueAnswer }) {
  const served = dispatchers.flatMap(({ projects }) => projects)
  const named = new Map(served.map((project) => [`project ${project}`, { what: { project } }]))
  const rows = new Map<string, { what: Limited } & Partial<(typeof known)[number]>>(named)
  for (const limit of known) {
    const { project, group } = limit
    const what: Limited = project === null ? { group: group! } : { project }
    rows.set(nameOf(what, ''), { ...limit, what })
  }
  const all = [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return (
    <Panel title="Limits" aside={<Acts quiet of={[LIMITS_GROUP]} />}>
      <Rows
        items={[['pool', { what: {}, ...pool }] as (typeof all)[number], ...all]}
        keyOf={([name]) => name}
        max={Number.POSITIVE_INFINITY}
        render={([name, { what, max = null, used = 0, paused = false }]) => (
          <div class="line">
            <span class="grows">{name}</span>
            <span class={max !== null && used >= max ? 'number is-warn' : 'dim number'}>
              {max === null ? `${used} running, no limit` : `${used} of ${max}`}
              {paused ? ' · paused' : ''}
            </span>
            <Acts quiet of={[...(what.project ? [pauses(paused, what)] : []), limits(what, max)]} />
          </div>
        )}
      />
    </Panel>
  )
}

/** Who waits with how much, what each got lately, and what would be fair now. */
function Shares({ status: { shares, user_locks } }: { status: QueueAnswer }) {
  const hour = useHour('run.ended').value
  // Runs are counted when they end, so those that go on are added.
  const seconds = new Map(hour?.fairness.users.map((each) => [each.user, each.run_seconds]))
  for (const { user, acquired_at } of user_locks.details) {
    const ran = acquired_at === null ? 0 : secondsSince(acquired_at, clock())
    seconds.set(user, (seconds.get(user) ?? 0) + Math.min(Math.max(0, ran), HOUR_SECONDS))
  }
  const all = [...seconds.values()].reduce((total, each) => total + each, 0)
  return (
    <Panel title="Queue by user" aside={<span class="number">{shares.length}</span>}>
      {shares.length === 0 ? (
        <Empty title="No queue yet">
          Each user has one queue; users take turns by fair share, whatever the length.
        </Empty>
      ) : (
        <p class="dim pad">
          The bar is what each got in the last hour; the mark, what is fair by weight among those
          who want something now.
        </p>
      )}
      <Rows
        items={shares}
        keyOf={({ user }) => user}
        max={SHOWN_MAX}
        render={({ user, weight, running, pending, paused, max, fair_share }) => {
          const got = (seconds.get(user) ?? 0) / (all || 1)
          const share = all === 0 ? 'nothing yet' : percent(got)
          const told = `got ${share}, fair ${percent(fair_share)}`
          const task = user_locks.details.find((each) => each.user === user)?.task_id ?? undefined
          const acts = [
            pauses(paused, { user }),
            weighs(user, weight),
            limits({ user }, max),
            ...(running > 0 ? [releasesUser(user, task)] : []),
          ]
          return (
            <div class="line share">
              <span class="grows">{user || '(no user)'}</span>
              <Acts quiet of={user ? acts : []} />
              <span class="share-bar" role="img" aria-label={`${user || 'no user'} ${told}`}>
                <span class="share-got" style={{ width: `${got * 100}%` }} />
                <span class="share-fair" style={{ left: `${fair_share * 100}%` }} />
              </span>
              <span class="dim grows">
                weight {weight} · {running} running · {pending} waiting{paused ? ' · paused' : ''}
              </span>
              <span class="dim number">{told}</span>
            </div>
          )
        }}
      />
    </Panel>
  )
}
