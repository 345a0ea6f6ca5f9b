import type { ComponentChildren } from 'preact'
import { type EventType, factsOf } from '../../core/event.ts'
import type { ShownEvent } from '../data/live.ts'
import { nameOf } from '../parts/badge.tsx'
import { AgentLink, LockLink, TaskLink } from '../parts/links.tsx'
import { span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

/**
 * What happened, as one would tell it, behind the name of who did it. In braces stands what an
 * event is about or a field of its data; what is in brackets is left out where one of those is.
 */
const TOLD: Record<EventType, string> = {
  'agent.appeared': 'was seen for the first time, as {kind}',
  'agent.lost': 'was lost: its last lease, on {lock}, ended',
  'alert.raised': 'raised an alert: {message}',
  'alert.cleared': 'cleared the alert {rule} of {subject}',
  'background_job.dead': 'gave up {kind} of {subject}: {error}',
  'deadlock.found': 'was refused, as it would wait for itself: {cycle}',
  'dispatcher.registered': 'began to serve [{projects} ]on {host}, slots: {slots_max}',
  'duplicate.found': 'found two notes that are alike',
  'duplicate.resolved': 'settled two notes that are alike: {action}',
  'hook.bypassed': 'went past the hook for {paths}: {reason}',
  'hook.noticed': 'noticed that {path} of {holder} was changed by another',
  'hook.restored': 'put {path} back from a copy',
  'hook.untrusted': 'runs no hooks in {folder}',
  'hook.trusted': 'runs our hooks in {folder}',
  'landing.asked': 'asked to land {landing}[ ({branch})][ onto {target}][, for {task}]',
  'landing.landed': 'landed {landing}[ onto {target}]',
  'landing.returned': 'sent {landing} back: {reason}',
  'landing.cancelled': 'cancelled {landing}: {reason}',
  'lease.granted': 'took {what}[ after waiting {waited_ms}]',
  'lease.extended': 'keeps {lock} a full time more, for {after}',
  'lease.handed_off': 'passed {lock} from {from} to {to}',
  'lease.released': 'gave {what} back[ after {held_ms}][: {reason}]',
  'lease.force_released': 'took {what} from {holder}[: {reason}]',
  'lease.cancelled': 'ended the lease of {holder} on {what}[: {reason}]',
  'lease.overdue': 'stopped {holder} on {what}: it took too long[, {held_ms}]',
  'lease.expired': 'lost {what}: its lease ran out[ after {held_ms}]',
  'lease.died': 'lost {what}: its process is gone[, after {held_ms}]',
  'lease.revoked': 'is to stop {holder} on {lock}[: {reason}]',
  'memory.conflicted': 'disagrees with another version of {note}',
  'memory.deleted': 'deleted the note {note}',
  'memory.embedded': 'made notes found by meaning',
  'memory.provider_changed': 'finds notes with {provider} from now on',
  'memory.pruned': 'took old versions of notes away: {versions}',
  'memory.put': 'wrote the note {note}, version {version}',
  'memory.merged': 'merged two versions of {note} ({strategy})',
  'memory.resolved': 'settled the conflict of {note}',
  'memory.retried': 'tries background jobs again: {tried}',
  'queue.limited': 'set the limits of {whose}[: at most {max}][, weight {weight}]',
  'queue.paused': 'paused {whose}',
  'queue.resumed': 'resumed {whose}',
  'run.started': 'began run {run} on {host}, PID {pid}',
  'run.ended': 'ended run {run}: {status}[, exit {exit_code}][, {signal}][: {reason}]',
  'store.pruned': 'forgot what is long over',
  'store.restored': 'put a backup in place',
  'task.claimed': 'claimed {task}, run {run}[, after {queued_ms} in the queue]',
  'task.created': 'added {task}',
  'task.edited': 'changed {fields} of {task}',
  'task.enqueued': 'enqueued {task}',
  'task.forgotten': 'forgot {task}',
  'task.moved': 'moved {task} from {from} to {to}',
  'task.quarantined': 'gave up {task}, after so many lost runs: {lost}',
  'ticket.broken': 'left its lines, to break a deadlock: {cycle}',
  'ticket.called': 'was called to take {lock}',
  'ticket.joined': 'waits for {names}',
  'ticket.left': 'gave up waiting for {lock} after {waited_ms}',
  'token.created': 'made a token of {role}[ for {for}]',
  'token.revoked': 'revoked token {token}',
  'worktree.made': 'made the worktree of run {run}, on {branch}',
  'worktree.left': 'left the worktree of run {run}[; what was uncommitted is saved as {salvage}]',
  'worktree.removed': 'removed the worktree of run {run}',
  'write.fenced_off': 'was refused a late write to {lock}',
}

/** What a word in braces stands for; undefined where this event does not say it. */
function meant(word: string, event: ShownEvent): ComponentChildren {
  const facts = factsOf(event)
  const { path, scope, key, group, project, user } = facts
  const lock = facts.lock ?? event.lock
  if (word === 'what' && path !== undefined) return <code>{path}</code>
  if ((word === 'lock' || word === 'what') && lock?.startsWith('task:'))
    return <TaskLink isBrief id={lock.slice('task:'.length)} />
  if (word === 'lock' || word === 'what')
    return lock === null ? undefined : <LockLink name={lock} />
  if (word === 'task') return event.task === null ? undefined : <TaskLink isBrief id={event.task} />
  if (word === 'names')
    return facts.names?.map((name, i) => [i > 0 && ', ', <LockLink key={name} name={name} />])
  if (word === 'note') return <a href={hrefOf('knowledge', { scope: scope!, id: key! })}>{key}</a>
  if (word === 'whose') return group ?? project ?? user ?? 'the whole queue'
  const value: unknown = facts[word as keyof typeof facts] ?? undefined
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.join(', ')
  if (word.endsWith('_ms') && typeof value === 'number') return span(value / 1000)
  if (event.type === 'task.moved') return nameOf(value as string)
  if (word === 'path' || word === 'folder') return <code>{facts[word]}</code>
  return typeof value === 'number' ? String(value) : (value as string | undefined)
}

function told(event: ShownEvent): ComponentChildren {
  // A newer server may tell of more.
  const parts = (TOLD[event.type] ?? event.type).split(/\[(.*?)\]/)
  return parts.map((part, i) => {
    const words = part.split(/\{(\w+)\}/).map((word, j) => (j % 2 ? meant(word, event) : word))
    return i % 2 && words.includes(undefined) ? '' : words
  })
}

const BAD =
  /expired|died|lost|overdue|fenced|quarantin|deadlock|broken|revoked|force|conflicted|raised/

export const Sentence = ({ event }: { event: ShownEvent }) => (
  <span class={`sentence ${BAD.test(event.type) ? 'is-bad' : ''}`}>
    <strong>
      <AgentLink id={event.agent} />
    </strong>{' '}
    {told(event)}
  </span>
)
