import type { ComponentChildren } from 'preact'
import type { EventData, EventType } from '../core/event.ts'
import { STATUS_NAMES } from './parts/badge.tsx'
import { count, span } from './parts/words.ts'
import { hrefOf } from './route.ts'
import type { ShownEvent } from './data/live.ts'
import { tasks } from './data/tasks.ts'

/** What happened, as one would tell it: who did what, to what, and why. */

type Said = ComponentChildren
type Of<T extends EventType> = Extract<ShownEvent, { type: T }>
type Tell = { [T in EventType]: (data: EventData[T], event: Of<T>) => Said }

const TaskLink = ({ id }: { id: string }) => (
  <a href={hrefOf('work', { id })} title={tasks.get(id)?.title ?? ''}>
    {id}
  </a>
)

const LockLink = ({ name }: { name: string }) =>
  name.startsWith('task:') ? (
    <TaskLink id={name.slice(5)} />
  ) : (
    <a href={hrefOf('who', { tab: 'locks', id: name })}>{name}</a>
  )

const lockOf = ({ lock }: ShownEvent) => lock !== null && <LockLink name={lock} />
const taskOf = ({ task }: ShownEvent) => task !== null && <TaskLink id={task} />
const note = ({ scope, key }: { scope: string; key: string }) => (
  <a href={hrefOf('knowledge', { scope, id: key })}>{key}</a>
)
const why = (reason: string | null | undefined) => (reason ? `: ${reason}` : '')
const held = (ms: number | undefined) => (ms === undefined ? '' : ` after ${span(ms / 1000)}`)
const whose = (data: { project?: string | null; user?: string | null }) => {
  if (data.project) return `project ${data.project}`
  return data.user ? `user ${data.user}` : 'the whole queue'
}
const what = (path: string | undefined, event: ShownEvent): Said =>
  path === undefined ? lockOf(event) : <code>{path}</code>

const TELL: Tell = {
  'agent.appeared': ({ kind }) => ['was seen for the first time, as ', kind],
  'agent.lost': ({ lock }) => [
    'was lost: its last lease, on ',
    <LockLink name={lock} />,
    ', ended',
  ],
  'alert.raised': ({ message }) => ['raised an alert: ', message],
  'alert.cleared': ({ rule, subject }) => `cleared the alert ${rule} of ${subject}`,
  'background_job.dead': ({ kind, subject, error }) => `gave up ${kind} of ${subject}: ${error}`,
  'deadlock.found': ({ cycle }) => ['was refused, as it would wait for itself: ', cycle.join('; ')],
  'dispatcher.registered': ({ host, slots_max, projects }) =>
    `began to serve ${projects.join(', ') || 'no project'} on ${host}, ${count(slots_max, 'slot')}`,
  'duplicate.found': ({ similarity }) =>
    `found two notes that are ${Math.round(similarity * 100)} % alike`,
  'duplicate.resolved': ({ action }) => `settled two notes that are alike: ${action}`,
  'hook.bypassed': ({ paths, reason }) => `went past the hook for ${paths.join(', ')}: ${reason}`,
  'hook.noticed': ({ path, holder }) => [
    <code>{path}</code>,
    ` of ${holder} was changed by another`,
  ],
  'hook.restored': ({ path }) => ['put ', <code>{path}</code>, ' back from a copy'],
  'hook.untrusted': ({ folder }) => ['runs no hooks in ', <code>{folder}</code>],
  'hook.trusted': ({ folder }) => ['runs our hooks in ', <code>{folder}</code>],
  'landing.asked': ({ landing, target, branch }, event) => [
    `asked to land ${branch ?? landing}`,
    target === null ? ' as a check only' : ` onto ${target}`,
    event.task !== null && [', for ', taskOf(event)],
  ],
  'landing.landed': ({ landing, target }) =>
    target === null ? `checked ${landing}: it passed` : `landed ${landing} onto ${target}`,
  'landing.returned': ({ landing, reason }) => `sent ${landing} back: ${reason}`,
  'landing.cancelled': ({ landing, reason }) => `cancelled ${landing}: ${reason}`,
  'lease.granted': ({ path, waited_ms }, event) => [
    path === undefined ? 'took ' : 'reserved ',
    what(path, event),
    waited_ms !== undefined && ` after waiting ${span(waited_ms / 1000)}`,
  ],
  'lease.extended': ({ after }, event) => ['keeps ', lockOf(event), ` a full time more: ${after}`],
  'lease.handed_off': ({ from, to }, event) => [`passed `, lockOf(event), ` from ${from} to ${to}`],
  'lease.released': ({ path, held_ms, reason }, event) => [
    'gave ',
    what(path, event),
    ` back${held(held_ms)}${why(reason)}`,
  ],
  'lease.force_released': ({ path, holder, reason }, event) => [
    'took ',
    what(path, event),
    ` from ${holder}${why(reason)}`,
  ],
  'lease.cancelled': ({ path, holder, reason }, event) => [
    'ended the lease of ',
    `${holder} on `,
    what(path, event),
    why(reason),
  ],
  'lease.overdue': ({ path, holder, held_ms }, event) => [
    `stopped ${holder} on `,
    what(path, event),
    `: it took too long${held(held_ms)}`,
  ],
  'lease.expired': ({ path, holder, held_ms }, event) => [
    `${holder} lost `,
    what(path, event),
    `: its lease ran out${held(held_ms)}`,
  ],
  'lease.died': ({ path, holder, held_ms }, event) => [
    `${holder} lost `,
    what(path, event),
    `: its process is gone${held(held_ms)}`,
  ],
  'lease.revoked': ({ holder, reason }, event) => [
    `is to stop ${holder} on `,
    lockOf(event),
    why(reason),
  ],
  'memory.conflicted': (data) => ['two versions of ', note(data), ' disagree'],
  'memory.deleted': (data) => ['deleted the note ', note(data)],
  'memory.embedded': ({ ids }) => `made ${count(ids.length, 'note')} found by meaning`,
  'memory.provider_changed': ({ provider }) => `finds notes with ${provider} from now on`,
  'memory.pruned': ({ versions }) => `took ${count(versions, 'old version')} of notes away`,
  'memory.put': (data) => ['wrote the note ', note(data), `, version ${data.version}`],
  'memory.merged': (data) => ['merged two versions of ', note(data), ` (${data.strategy})`],
  'memory.resolved': (data) => ['settled the conflict of ', note(data)],
  'memory.retried': ({ tried }) => `tries ${count(tried, 'background job')} again`,
  'queue.limited': ({ project, group, user, max, weight }) => {
    const of = group ? `group ${group}` : whose({ project: project ?? null, user: user ?? null })
    if (weight !== undefined) return `gave ${of} the weight ${weight}`
    return max === null || max === undefined
      ? `took the limit of ${of} away`
      : `lets ${of} run ${max} at once`
  },
  'queue.paused': (data) => `paused ${whose(data)}`,
  'queue.resumed': (data) => `resumed ${whose(data)}`,
  'run.started': ({ run, host, pid }) => `began run ${run} on ${host}, PID ${pid}`,
  'run.ended': ({ run, status, exit_code, signal, reason }) => [
    `ended run ${run}: ${status}`,
    exit_code !== null && `, exit ${exit_code}`,
    signal !== null && `, ${signal}`,
    why(reason),
  ],
  'store.pruned': (data) =>
    `forgot what is long over: ${Object.entries(data)
      .map(([kind, n]) => `${n} ${kind}`)
      .join(', ')}`,
  'store.restored': () => 'put a backup in place',
  'task.claimed': ({ run, queued_ms }, event) => [
    'claimed ',
    taskOf(event),
    `, run ${run}`,
    queued_ms !== undefined && `, after ${span(queued_ms / 1000)} in the queue`,
  ],
  'task.created': (_data, event) => ['added ', taskOf(event)],
  'task.edited': ({ fields }, event) => [`changed ${fields.join(', ')} of `, taskOf(event)],
  'task.enqueued': (_data, event) => ['enqueued ', taskOf(event)],
  'task.forgotten': (_data, { task }) => `forgot task ${task}`,
  'task.moved': ({ from, to }, event) => [
    'moved ',
    taskOf(event),
    ` from ${STATUS_NAMES[from]} to ${STATUS_NAMES[to]}`,
  ],
  'task.quarantined': ({ lost }, event) => [
    'gave up ',
    taskOf(event),
    `: ${count(lost, 'run')} of it were lost`,
  ],
  'ticket.broken': ({ cycle }) => ['left its lines, to break a deadlock: ', cycle.join('; ')],
  'ticket.called': (_data, event) => ['was called to take ', lockOf(event)],
  'ticket.joined': ({ names }) => [
    'waits for ',
    names.map((name, i) => [i > 0 && ', ', <LockLink key={name} name={name} />]),
  ],
  'ticket.left': ({ waited_ms }, event) => ['gave up waiting for ', lockOf(event), held(waited_ms)],
  'token.created': ({ role, for: agent }) =>
    `made a token of ${role}${agent ? ` for ${agent}` : ''}`,
  'token.revoked': ({ token }) => `revoked token ${token}`,
  'worktree.made': ({ branch, run }) => `made the worktree of run ${run}, on ${branch}`,
  'worktree.left': ({ run, salvage }) =>
    `left the worktree of run ${run}${salvage ? '; what was uncommitted is saved' : ''}`,
  'worktree.removed': ({ run }) => `removed the worktree of run ${run}`,
  'write.fenced_off': ({ by }, event) => ['refused a late write of ', by, ' to ', lockOf(event)],
}

function told(event: ShownEvent): Said {
  const tell = TELL[event.type] as ((data: object, event: ShownEvent) => Said) | undefined
  try {
    return tell?.(event.data, event) ?? event.type
  } catch {
    // It was recorded by a release that said less.
    return event.type
  }
}

/** The sentence of an event; one that this page does not know is told by its name. */
export function Sentence({ event }: { event: ShownEvent }) {
  return (
    <span class={`sentence ${toneOf(event.type)}`}>
      <a href={hrefOf('who', { id: event.agent })}>
        <strong>{event.agent}</strong>
      </a>{' '}
      {told(event)}
    </span>
  )
}

const BAD =
  /expired|died|lost|overdue|fenced|quarantin|deadlock|broken|revoked|force|conflicted|raised/

const toneOf = (type: string) => (BAD.test(type) ? 'is-bad' : '')
