import type { Registered } from '../../src/operations/registry.ts'
import { ownProcess } from '../../src/machine/process.ts'
import { sha256, uniqueId } from '../../src/machine/digest.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { putLanding } from './samples.ts'
import type { Served } from './serving.ts'

export type Name = Registered['name']

/** Of each user, the conflict between its two versions of a note. */
export const conflicts = new Map([['nobody', 'nobody-conflict']])

/** Everything that one user has; every name of it begins with the user's own. */
export async function furnish(daemon: Served, store: Store, user: string): Promise<void> {
  const project = `${user}-project`
  const agent = `${user}-agent`
  const scope = `project:${project}`
  const queued = { prompt: `${user} prompt`, project, user, agent: `${user}-owner` }
  for (const part of ['busy', 'waiting', 'cancelled']) {
    await daemon.ok('queue.add', { ...queued, id: `${user}-${part}` })
  }
  await daemon.ok('queue.cancel', { id: `${user}-cancelled` })
  await daemon.ok('task.claim', { id: `${user}-busy`, queued: true, agent })
  await daemon.ok('task.create', { id: `${user}-task`, title: `${user} title`, project, user })
  await daemon.ok('lock.acquire', { name: `git:${project}`, agent, ttl_seconds: 3600 })
  await daemon.ok('reserve.add', { paths: [`${user}/**`], project, agent, reason: `${user} why` })
  await daemon.ok('memory.put', { key: `${user}-note`, content: `${user} one`, scope, agent })
  const second = { key: `${user}-note`, content: `${user} two`, scope, agent: `${agent}-2` }
  const { conflict } = await daemon.ok('memory.put', second)
  conflicts.set(user, conflict.id)
  await daemon.ok('memory.put', { key: `${user}-note-b`, content: `${user} three`, scope, agent })
  await store.write((view) => {
    const ids = { a: `${scope}\n${user}-note`, b: `${scope}\n${user}-note-b` }
    const open = { similarity: 0.9, label: null, status: 'open' as const, action: null }
    const ends = { resolved_by: null, resolved_at: null, found_at: view.at }
    view.put('duplicate', { id: `${user}-pair`, ...ids, ...open, ...ends })
    putLanding(view, project, `${user}-landing`)
    const landing = view.get('landing', `${user}-landing`)!
    view.put('landing', { ...landing, task_id: `${user}-task` })
    // It belongs to who asked for it: to nobody here.
    putLanding(view, project, `${user}-branch-landing`)
  })
}

/** What is only of one side: of users, or of projects. */
export async function furnishSides(daemon: Served, user: string): Promise<void> {
  const [agent, scope] = [`${user}-agent`, `user:${user}`]
  const [one, two] = [`${user} alice prompt`, `${user} alice prompt prompt`]
  await daemon.ok('memory.put', { key: `${user}-own`, content: one, scope, agent })
  const task = { key: `${user}-of-task`, content: two, scope: `task:${user}-task`, agent }
  await daemon.ok('memory.put', task)
}

/** Bob beside alice in her own project: for whom is bound to alice he is not there either. */
export async function besideAlice(daemon: Served): Promise<void> {
  const project = 'alice-project'
  const queued = { prompt: 'bob too', user: 'bob', project, agent: 'bob-owner' }
  for (const id of ['bob-beside', 'bob-beside-2']) await daemon.ok('queue.add', { ...queued, id })
  const touches = ['alice/**']
  const made = { id: 'bob-touching', title: 'bob', user: 'bob', project, touches }
  await daemon.ok('task.create', { ...made, depends_on: ['alice-task'] })
  await daemon.ok('queue.limit', { user: 'bob', max: 3 })
}

/** What differs between any two moments: times that count down, and how long ago a thing was. */
export const steady = (text: string) =>
  text
    .replaceAll(/("?(?:expires_in|age|for|since)_seconds"?\\?":) ?\d+/g, '$1 N')
    .replaceAll(/\d+ ?s left/g, 'N s left')
    .replaceAll(/(lasted|longest|for|heard of for) \d+ (?:s|min)\b/g, '$1 N')
    .replaceAll(/(task|memory)-text-[0-9a-f]+/g, '$1-text')
    .replaceAll(/\d+ s ago/g, 'N s ago')
    .replaceAll(/"(last_seen_at|at)":"[^"]*"/g, '"$1":"NOW"')

/** Every operation, about what `user` has. A new operation does not compile without its sample. */
export function samplesOf(user: string): Record<Name, object> {
  const project = `${user}-project`
  const scope = `project:${project}`
  const lock = `git:${project}`
  const note = { key: `${user}-note`, scope }
  const busy = { id: `${user}-busy.1`, fence: 1 }
  const group = { ...ownProcess(), pid: 4_000_000 }
  const fresh = uniqueId().slice(0, 8)
  return {
    'lock.acquire': { names: [`user:${user}`] },
    'lock.renew': { name: lock },
    'lock.status': { name: lock },
    'lock.list': {},
    'lock.explain': { name: lock },
    'lock.name_group': { name: lock, fence: 1, group },
    'lock.force_release': { name: lock },
    'lock.release': { name: lock },
    'lock.hand_off': { name: lock, to: 'x' },
    'lock.peek': { names: [lock, `task:${user}-busy`] },
    'lock.waiters': {},
    'task.create': { title: fresh, user, project },
    'task.get': { id: `${user}-task` },
    'task.list': { project },
    'task.claim': { id: `${user}-task` },
    'task.status': { id: `${user}-task`, status: 'cancelled' },
    'task.update': { id: `${user}-task`, version: 1, title: 'x' },
    'task.explain': { id: `${user}-task` },
    'task.peek': { ids: [`${user}-task`] },
    'queue.add': { prompt: fresh, user, project },
    'queue.status': {},
    'queue.list': { user },
    'queue.cancel': { id: `${user}-waiting` },
    'queue.retry': { id: `${user}-cancelled` },
    'queue.pause': { user },
    'queue.resume': { user },
    'queue.limit': { user, max: 2 },
    'queue.cleanup': { project },
    'queue.release_user': { user },
    'run.list': { user },
    'run.get': { id: busy.id },
    'run.start': { ...busy, process: ownProcess(), group },
    'run.finish': { ...busy, exit_code: 0 },
    'run.output': { id: busy.id },
    'land.add': { id: `${user}-task`, project },
    'land.list': { project },
    'land.get': { id: `${user}-landing` },
    'land.cancel': { id: `${user}-landing` },
    'worktree.list': { project },
    'worktree.get': { id: busy.id },
    'worktree.enter': { repository: `/${user}`, process: ownProcess(), group },
    'worktree.record': { repository: `/${user}`, host: 'h', fence: 1 },
    'reserve.add': { paths: ['x/**'], project },
    'reserve.touch': { paths: ['x/y'], project, mode: 'auto' },
    'reserve.check': { paths: [`${user}/x`], project },
    'reserve.list': { project },
    'reserve.ask': { paths: [`${user}/x`], project, reason: 'x' },
    'hook.notice': { paths: [`${user}/x`], project },
    'hook.restore': { paths: [`${user}/x`], project },
    'reserve.release': { project },
    'agent.list': {},
    'agent.heartbeat': {},
    'token.create': { secret_hash: sha256(fresh), role: 'viewer' },
    'token.list': {},
    'token.revoke': { id: 'x' },
    'event.list': { task_id: `${user}-busy` },
    'memory.put': { ...note, content: fresh, based_on: 1 },
    'memory.get': note,
    'memory.list': { scope },
    'memory.history': note,
    'memory.delete': { ...note, based_on: 1 },
    'memory.prune': { scope },
    'memory.search': { query: `${user} one`, scope },
    'memory.context': { task_id: `${user}-task` },
    'memory.status': {},
    'memory.retry': {},
    'duplicate.list': { scope },
    'duplicate.resolve': { id: `${user}-pair`, action: 'keep_both' },
    'conflict.list': { id: conflicts.get(user) },
    'conflict.resolve': { id: conflicts.get(user), choose: 'theirs' },
    'stats.get': { since_seconds: 60 },
    'alert.list': {},
    'now.get': {},
    'stuck.get': {},
    'span.list': { lock: `task:${user}-busy` },
    'hook.bypass': { paths: ['a.ts'], reason: 'sample' },
  }
}
