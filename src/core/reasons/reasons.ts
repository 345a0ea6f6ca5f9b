import { type Action, actionsOf } from '../next.ts'
import { LOST_MAX } from '../bounds.ts'
import { lockOf, taskOf } from '../locks/lease.ts'
import { whyFull } from '../queue/limit.ts'
import { isResource } from '../queue/rows.ts'
import { argument, quoted, word } from '../quote.ts'
import {
  about,
  adminCan,
  can,
  type KnownReason,
  type Facts,
  lasted,
  type Remedy,
  type Severity,
} from './reason.ts'

/**
 * Why work does not go on: every reason that there is, each said once. `explain` tells the reasons
 * of one task or waiter, `stuck` puts those together that have one root, and an alert is a reason
 * that lasted.
 */

const again = ({ id, queued }: Facts) => [
  queued
    ? can(`Retry task ${id}`, 'queue.retry', { id })
    : can(`Retry task ${id}`, 'task.status', { id, status: 'todo' }),
]

const accept = ({ id }: Facts) => [
  can(`Accept task ${id}`, 'task.status', { id, status: 'done' }),
  can(`Send back task ${id}`, 'task.status', { id, status: 'todo' }),
]

const fullLimit: KnownReason = {
  severity: 'info',
  says: ({ limit: key, max, used }) =>
    `waits because ${whyFull({ key, max, used, paused: false })}`,
  next: ({ limit, max: now }) => {
    if (isResource(limit)) return ['Wait, or lend more of them: resources in config.json.']
    const [kind, name] = limit.split(/:(.*)/s) as [string, string?]
    const max = (now ?? 0) + 1
    const of = name === undefined ? {} : { [kind]: name }
    return [adminCan(`Let ${max} run at once`, 'queue.limit', { ...of, max })]
  },
  root: ({ limit }) => ['limit_full', limit],
  about: ({ limit }) => about('limit', [limit]),
}

/** A sentence of its own, with what to do about it. */
const sentence = (severity: Severity, ...next: string[]): KnownReason => {
  return { severity, says: ({ what }) => what, next: () => next }
}

/** How many tasks ended, by what they said last. */
const ended = (severity: KnownReason['severity'], was: string): KnownReason => ({
  severity,
  says: (of) => (lastWord(of) === '' ? was : `${was}: ${quoted(lastWord(of))}`),
  next: again,
  about: ({ id, run }) => [...about('task', [id]), ...about('run', run ? [run] : [])],
  isOver: true,
})

/** What came back from landing it, else how its last run ended. */
const lastWord = ({ reason, outcome }: Facts) => reason ?? outcome ?? ''

const CONFIGURE = 'Name the project in config.json, then: leasehold config approve'

/** Every code, those of tasks in the order in which `explain` tells them. */
export const REASONS = {
  running: {
    severity: 'info',
    says: ({ assignee, until, before }) =>
      `is running: ${word(assignee ?? 'nobody')} has it${until}${before}`,
    root: ({ late_ms }) => (late_ms > 0 ? ['unbegun', ''] : undefined),
    leads: ({ id }) => ({ lock: lockOf(id) }),
  },
  landing: {
    severity: ({ reason }) => (reason === null ? 'info' : 'warn'),
    says: ({ landing, target, position, reason }) => {
      const what = target === null ? 'its check' : `landing onto ${target}`
      const now = position === null ? 'under way' : `number ${position} in line`
      return `is in review: ${what} is ${now} (${landing})${reason ? `; ${reason}` : ''}`
    },
    next: ({ landing: id }) => [can('See it', 'land.get', { id })],
    // What is being landed needs nobody.
    root: ({ is_left, reason }) => {
      if (is_left) return ['no_lander', '']
      return reason === null ? undefined : ['landing', reason]
    },
    about: ({ id }) => about('task', [id]),
  },
  ended: {
    severity: 'warn',
    says: ({ status, run, agent, outcome, lost, landing, reason }) => {
      if (landing) return `failed: landing ${landing} came back with ${quoted(reason ?? '')}`
      if (!run) return `is not waiting to run: it is ${status === 'review' ? 'in review' : status}`
      const last = `its last run, ${run} of ${word(agent)}, ended with ${quoted(outcome ?? '')}`
      return lost >= LOST_MAX
        ? `was put aside, because ${lost} of its runs were lost; ${last}`
        : `failed: ${last}`
    },
    next: (of) => (of.status === 'done' ? [] : of.status === 'review' ? accept(of) : again(of)),
    root: (of) => {
      if (of.status !== 'failed') return of.status === 'review' ? ['review', ''] : undefined
      if (of.lost >= LOST_MAX) return ['quarantined', lastWord(of)]
      const couldStart = !of.outcome?.startsWith('could not start')
      return [couldStart ? 'failed' : 'agent_missing', lastWord(of)]
    },
  },
  dependency: {
    severity: ({ status }) => (status === 'cancelled' ? 'warn' : 'info'),
    says: ({ task_id, status }) =>
      task_id === undefined
        ? 'waits for a task of others'
        : `waits for task ${task_id}, which is ${status ?? 'gone'}`,
    next: ({ task_id: id, status }) => {
      if (status !== 'cancelled') return []
      return [can(`Take task ${id} up again`, 'task.status', { id, status: 'todo' })]
    },
    root: ({ task_id, status }) => (status === 'cancelled' ? ['dependency', task_id] : undefined),
    leads: ({ task_id }) => (task_id === undefined ? undefined : { task: task_id }),
    about: ({ task_id }) => about('task', [task_id]),
  },
  locked: {
    severity: 'info',
    says: ({ holder, expires_at }) => `is locked by ${word(holder!)} until ${expires_at}`,
    leads: ({ id }) => ({ lock: lockOf(id) }),
  },
  promised: {
    severity: 'info',
    says: ({ next_holder }) =>
      `has a free lock that is promised to ${word(next_holder)}, who waits for it`,
    leads: ({ ticket }) => ({ ticket }),
  },
  assigned: {
    severity: 'info',
    says: ({ assigned_to }) =>
      `is assigned to ${word(assigned_to)}, so only that agent may claim it`,
  },
  paused: {
    severity: ({ paused }) => (paused === 'all' ? 'bad' : 'warn'),
    says: ({ paused }) => {
      const [kind, name = ''] = paused.split(/:(.*)/s)
      const what = paused === 'all' ? 'the whole queue' : `the queue of ${kind} ${word(name)}`
      return `waits because ${what} is paused`
    },
    next: ({ paused }) => {
      const [kind, name] = paused.split(/:(.*)/s) as [string, string?]
      const input = name === undefined ? {} : { [kind]: name }
      return [adminCan('Let it go on', 'queue.resume', input)]
    },
    root: ({ paused }) => ['paused', paused === 'all' ? '' : paused],
    about: ({ paused }) =>
      paused.startsWith('project:') ? about('project', [paused.slice(8)]) : [],
  },
  user_busy: {
    severity: 'info',
    says: ({ user, max, busy_with, next }) => {
      if (next) return `waits because the lock ${word(`user:${user}`)} is promised to ${word(next)}`
      return busy_with
        ? `waits because user ${word(user)} is busy with ${busy_with.replace('task:', 'task ')}`
        : `waits because user ${word(user)} may have ${max} running`
    },
    next: ({ user, max }) => {
      const more = (max ?? 0) + 1
      return [
        adminCan(`Let ${word(user)} have ${more} at once`, 'queue.limit', { user, max: more }),
      ]
    },
    root: () => ['user_busy', ''],
    leads: ({ busy_with }) => {
      const task = taskOf(busy_with ?? '')
      if (task !== undefined) return { task }
      return busy_with === undefined ? undefined : { lock: busy_with }
    },
    about: ({ busy_with }) => about('task', [taskOf(busy_with ?? '') ?? []].flat()),
  },
  project_limit: fullLimit,
  group_limit: fullLimit,
  pool_limit: fullLimit,
  order: {
    severity: 'info',
    says: ({ position, next_task }) =>
      `is number ${position} in its queue, and task ${next_task} comes before it`,
    leads: ({ next_task }) => ({ task: next_task }),
  },
  no_dispatcher: {
    severity: 'bad',
    says: () => 'waits for a dispatcher, and none is running',
    next: () => ['Start one: leasehold up'],
    root: () => ['no_dispatcher', ''],
  },
  unserved: {
    severity: 'bad',
    says: ({ project }) => `waits because no dispatcher serves project ${word(project)}`,
    next: () => [CONFIGURE],
    root: ({ project, serves_any }) => (serves_any ? ['unserved', project] : ['no_project', '']),
    about: ({ project }) => about('project', [project]),
  },
  resource_limit: fullLimit,
  no_slot: {
    severity: 'info',
    says: ({ slots }) => `waits for a free slot: all ${slots} are in use`,
    next: () => ['Wait, or raise slots.max in config.json.'],
    root: () => ['no_slot', ''],
  },
  ready: {
    severity: 'info',
    says: ({ queued }) =>
      queued
        ? 'is next in turn: a dispatcher is about to start it'
        : 'is ready, but no agent has claimed it yet',
    next: ({ id, queued }) => (queued ? [] : [can('Take it', 'task.claim', { id })]),
    root: ({ queued }) => (queued ? undefined : ['unclaimed', '']),
  },
  overlap: {
    severity: 'info',
    says: ({ task_id, paths }) =>
      `may conflict with task ${task_id}: both change ${paths.map(word).join(', ')}`,
  },
  waiting: {
    severity: 'info',
    says: ({ name, position, waiters, holder, until, first, also }) => {
      const called = also.length > 0 ? '' : ' and its head has been called'
      const free = `it is free${first ? `, but ${word(first.agent)} comes first` : called}`
      const who = holder ? `${word(holder)} holds it until ${until}` : free
      const others =
        also.length > 0 ? `; it needs ${also.map(word).join(', ')} at the same time` : ''
      return `is number ${position} of ${waiters} in the line for ${word(name)}; ${who}${others}`
    },
    leads: ({ name, holder, first, also, ticket }) => {
      if (holder) return { lock: name }
      return first || also.length > 0 ? { ticket: first?.ticket ?? ticket } : undefined
    },
  },

  // What `stuck` tells besides, or calls by another name than `explain`.
  limit_full: fullLimit,
  no_project: {
    severity: 'bad',
    says: () => 'waits, and no project is configured',
    next: () => [CONFIGURE],
  },
  unclaimed: { severity: 'info', says: () => 'is ready, but no agent has claimed it yet' },
  unbegun: {
    severity: 'warn',
    says: ({ late_ms }) => `has not begun for ${lasted(late_ms)}`,
    next: () => ['See what git waits for there (a filter, a disk), and end that program.'],
  },
  failed: ended('warn', 'failed'),
  quarantined: ended('warn', 'was put aside after too many lost runs'),
  agent_missing: ended(({ lately }) => (lately ? 'bad' : 'warn'), 'could not be started'),
  review: {
    severity: 'warn',
    says: () => 'waits for a review',
    next: accept,
    about: ({ id }) => about('task', [id]),
    isOver: true,
  },
  no_lander: {
    severity: 'bad',
    says: () => 'waits to be landed, and no server is running that could',
    about: ({ id }) => about('task', [id]),
    next: () => ['Start one: leasehold up'],
  },
  held: {
    severity: ({ long }) => (long ? 'warn' : 'info'),
    says: ({ what }) => what,
    // It is at work: nothing that would end that is offered.
    next: ({ holder }) => [`Wait, or ask ${holder}.`],
  },
  holder_silent: {
    severity: 'warn',
    says: ({ what }) => what,
    next: ({ names, task: id }) => {
      if (id !== undefined) return [can(`Cancel task ${id}`, 'queue.cancel', { id })]
      return names.map((name) => {
        const input = { name, reason: 'others wait for it' }
        return adminCan(`Force-release ${word(name)}`, 'lock.force_release', input)
      })
    },
  },
  deaths: {
    severity: 'warn',
    says: ({ what }) => what,
    next: () => ['See who: leasehold event list --type lease.died,lease.expired --since 1h'],
    isOver: true,
  },
  deadlock: sentence('warn', 'Take several locks in one call, or always in the same order.'),
  store_trouble: sentence('bad', 'See what is wrong with it: leasehold doctor'),
  store_damaged: sentence('bad', 'See what is wrong with it: leasehold doctor'),
} satisfies Record<string, KnownReason>

export type Code = keyof typeof REASONS
export const CODES = Object.keys(REASONS) as [Code, ...Code[]]
const known = (code: Code): KnownReason => REASONS[code]

/** A code for programs, a sentence for people. */
export interface Reason {
  code: Code
  sentence: string
  details: Partial<Facts>
}

export function because(code: Code, details: Partial<Facts>): Reason {
  return { code, sentence: known(code).says(details as Facts), details }
}

export function severityOf({ code, details }: Reason): Severity {
  const { severity } = known(code)
  return typeof severity === 'string' ? severity : severity(details as Facts)
}

export const isOver = ({ code }: Pick<Reason, 'code'>) => known(code).isOver === true
export const leadsTo = ({ code, details }: Reason) => known(code).leads?.(details as Facts)
export const aboutOf = ({ code, details }: Reason) => known(code).about?.(details as Facts) ?? []

/** The same as `stuck` tells it, and what it has in common with others; undefined: not at all. */
export function rootOf({ code, details }: Reason): { root: Reason; key: string } | undefined {
  const { root } = known(code)
  const [kind, key] = (root ? root(details as Facts) : [code, '']) ?? []
  return kind === undefined ? undefined : { root: because(kind as Code, details), key: key! }
}

/** What can be done by who asks; what goes on by itself does not need an admin. */
export const nextOf = (reason: Reason): Action[] =>
  actionsOf(known(reason.code).next?.(reason.details as Facts) ?? '').flatMap((each) => {
    const { says, operation, input, admin } = each as Partial<Remedy> & Action
    if (admin && severityOf(reason) === 'info') return []
    return operation === undefined ? [{ says }] : [{ says, operation, input: input ?? {} }]
  })

/** What can be done about the first, in words; and about each, as operations. */
export function adviceOn(...reasons: Reason[]): { next: string; actions: Remedy[] } {
  const all = reasons.flatMap(({ code, details }) => known(code).next?.(details as Facts) ?? [])
  const [first = ''] = all
  const remedies = all.filter((each) => typeof each !== 'string')
  const actions = [...new Map(remedies.map((each) => [JSON.stringify(each), each])).values()]
  if (typeof first === 'string') return { next: first, actions }
  const goesByItself = first.admin && severityOf(reasons[0]!) === 'info'
  const says = goesByItself ? 'Wait, or' : first.says
  return { next: `${says}: leasehold ${commandOf(first)}`, actions }
}

/** Its words, its subject, and what else it is told as flags. */
function commandOf({ operation, input: { id, name, status, ...flags } }: Remedy): string {
  const subject = [id, name, status].filter((each) => each !== undefined)
  const rest = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value])
  const words = [...subject, ...rest].map((each) => argument(String(each)))
  // The one command that is not called as its operation is.
  const command = operation === 'land.get' ? 'land show' : operation.replace('.', ' ')
  return [command.replaceAll('_', '-'), ...words].join(' ')
}
