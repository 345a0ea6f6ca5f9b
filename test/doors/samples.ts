import type { Lease } from '../../src/core/schema/lock.ts'
import { randomUUID } from 'node:crypto'
import type { Registered } from '../../src/operations/registry.ts'
import { land } from '../../src/core/landing/land.ts'
import { acquireLocks } from '../../src/core/locks/lock.ts'
import { repositoryLock } from '../../src/core/queue/worktree.ts'
import type { GroupRef } from '../../src/core/rows.ts'
import type { View } from '../../src/core/view.ts'
import { sha256 } from '../../src/machine/digest.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { ownProcess } from '../../src/machine/process.ts'
import { callerOf } from '../support/helpers.ts'
import type { Served } from './serving.ts'

type Name = Registered['name']

/** What the samples speak of: things that `prepare` has put into the store. */
interface Scene {
  /** A lock that ada holds for an hour. */
  held: { name: string; fence: number }
  task: string
  token: string
  group: GroupRef
  /** A user that is kept busy by a run of ada's, and what waits in its queue. */
  queue: { user: string; run: string; fence: number; waiting: string; cancelled: string }
  /** A note with two versions that disagree. */
  memory: { key: string; conflict: string; pair: string; landing: string }
  /** A repository that ada is at work in, with a worktree. */
  entered: { repository: string; host: string; fence: number }
}

/** Puts in what the samples need, with ada as the holder. */
export async function prepare(daemon: Served, group: GroupRef): Promise<Scene> {
  const mark = randomUUID().slice(0, 8)
  const name = `held-${mark}`
  const ask = { names: [name], agent: 'ada', ttl_seconds: 3600 }
  const { fence } = await daemon.ok('lock.acquire', ask)
  const { id: task } = await daemon.ok('task.create', { id: `task-${mark}`, title: 'To do' })
  const secret_hash = sha256(mark)
  const { id: token } = await daemon.ok('token.create', { secret_hash, role: 'viewer' })
  const queue = await prepareQueue(daemon, `user-${mark}`)
  const memory = await prepareMemory(daemon, `note-${mark}`)
  const entered = await prepareWorktree(daemon, queue)
  return { held: { name, fence }, task, token, group, queue, memory, entered }
}

/** A worktree, and its repository, which a program of ada's has entered. */
async function prepareWorktree({ place }: Served, { user, run, fence }: Scene['queue']) {
  const store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
  const repository = `/sample/${user}`
  const process = ownProcess()
  const { host } = process
  const whose = { id: run, run_id: run, task_id: `${user}-busy`, fence, project: user, host }
  const where = { repository, path: `${repository}/x`, branch: 'x', base: null }
  const stands = { state: 'left' as const, salvage: null, changed: [], kept_because: null }
  const ask = { names: [repositoryLock(host, repository)], ttl_ms: 600_000, priority: 5 }
  const [lease] = await store.write((view) => {
    view.put('worktree', { ...whose, ...where, ...stands, begun_at: view.at, left_at: view.at })
    return acquireLocks(view, { ...ask, process, takeover: false }, callerOf('ada')) as Lease[]
  })
  await store.close()
  return { repository, host, fence: lease!.fence }
}

async function prepareQueue(daemon: Served, user: string): Promise<Scene['queue']> {
  const add = async (id: string) => {
    const ask = { id, prompt: 'Mend it', project: user, user, agent: 'ada' }
    return (await daemon.ok('queue.add', ask)).task.id as string
  }
  const id = await add(`${user}-busy`)
  const { run, lease } = await daemon.ok('task.claim', { id, queued: true, agent: 'ada' })
  const waiting = await add(`${user}-waiting`)
  const cancelled = await add(`${user}-cancelled`)
  await daemon.ok('queue.cancel', { id: cancelled })
  return { user, run: run.id, fence: lease.fence, waiting, cancelled }
}

async function prepareMemory(daemon: Served, key: string): Promise<Scene['memory']> {
  await daemon.ok('memory.put', { key, content: 'one' })
  const { conflict } = await daemon.ok('memory.put', { key, content: 'two', agent: 'bob' })
  return { key, conflict: conflict.id, ...(await putApart(daemon, key)) }
}

/** Two notes that were found to be alike, as a server with a model would record it; a landing. */
async function putApart({ place }: Served, key: string) {
  const store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
  const open = { label: null, status: 'open' as const, action: null }
  const pair = { id: `pair-${key}`, a: `global\n${key}`, b: `global\n${key}-b`, similarity: 0.9 }
  const settled = { resolved_by: null, resolved_at: null }
  const landing = `landing-${key}`
  await store.write((view) => {
    view.put('duplicate', { ...pair, ...open, ...settled, found_at: view.at })
    putLanding(view, key, landing)
  })
  await store.close()
  return { pair: pair.id, landing }
}

/** A landing that waits, of a project that lands. */
export function putLanding(view: View, project: string, id: string): void {
  view.put('landing_rule', { project, onto: 'main', auto: false, checks: true })
  const landing = land(view, { id: 'fix/it', project }, callerOf('ada'))
  view.remove('landing', landing.id)
  view.put('landing', { ...landing, id })
}

/**
 * For every operation an input that ada may ask with success: what then refuses it is what the test
 * is about. The type asks for a sample as soon as an operation is added.
 */
export function samplesFor({
  held,
  task,
  token,
  group,
  queue,
  memory,
  entered,
}: Scene): Map<Name, object> {
  const { name } = held
  const { user, waiting, cancelled } = queue
  const run = { id: queue.run, fence: queue.fence }
  const samples = {
    'lock.acquire': { names: [`fresh-${name}`], ttl_seconds: 3600 },
    'lock.renew': held,
    'lock.status': { name },
    'lock.list': { limit: 5 },
    'lock.explain': { name },
    'lock.name_group': { ...held, group },
    'lock.force_release': { name },
    'lock.release': held,
    'lock.hand_off': { ...held, to: 'bob' },
    'task.create': { title: 'New' },
    'task.get': { id: task },
    'task.list': { ready: true },
    'task.claim': { id: task },
    'task.status': { id: task, status: 'in_progress' },
    'task.update': { id: task, version: 1, title: 'Changed' },
    'task.explain': { id: task },
    'queue.add': { prompt: 'Mend it', project: user, user },
    'queue.status': {},
    'queue.list': { user },
    'queue.cancel': { id: waiting },
    'queue.retry': { id: cancelled },
    'queue.pause': { project: user },
    'queue.resume': { project: user },
    'queue.limit': { project: user, max: 3 },
    'queue.cleanup': { project: 'another' },
    'queue.release_user': { user },
    'run.list': { limit: 5 },
    'run.get': { id: run.id },
    'run.start': { ...run, process: ownProcess(), group },
    'run.finish': { ...run, exit_code: 0 },
    'land.add': { id: 'fix/that', project: memory.key },
    'land.list': { limit: 5 },
    'land.get': { id: memory.landing },
    'land.cancel': { id: memory.landing },
    'worktree.list': { limit: 5 },
    'worktree.get': { id: queue.run },
    'worktree.enter': { repository: `/sample/${name}`, process: ownProcess(), group },
    'worktree.record': entered,
    'reserve.add': { paths: [`src/${name}/**`], checkout: '/sample' },
    'reserve.touch': { paths: [`src/${name}/a.ts`], checkout: '/sample', mode: 'auto' },
    'reserve.check': { paths: [`src/${name}/a.ts`], checkout: '/sample' },
    'reserve.list': { limit: 5 },
    'reserve.release': { checkout: '/sample' },
    'agent.list': { limit: 5 },
    'agent.heartbeat': {},
    'token.create': { secret_hash: sha256(`another-${name}`), role: 'viewer' },
    'token.list': {},
    'token.revoke': { id: token },
    'event.list': { limit: 5 },
    'run.output': { id: run.id },
    'task.peek': { ids: [task] },
    'lock.peek': { names: [name] },
    'lock.waiters': { limit: 5 },
    'memory.put': { key: `fresh-${name}`, content: 'Learned', scope: 'project:web' },
    'memory.get': { key: memory.key },
    'memory.list': { limit: 5 },
    'memory.history': { key: memory.key },
    'memory.delete': { key: memory.key, based_on: 1 },
    'memory.prune': { scope: 'project:none' },
    'memory.search': { query: 'learned' },
    'memory.context': { query: 'learned' },
    'memory.status': {},
    'memory.retry': {},
    'duplicate.list': {},
    'duplicate.resolve': { id: memory.pair, action: 'keep_both' },
    'conflict.list': { id: memory.conflict },
    'conflict.resolve': { id: memory.conflict, choose: 'theirs' },
    'stats.get': { since_seconds: 60 },
    'alert.list': {},
    'hook.bypass': { paths: ['a.ts'], reason: 'sample' },
    'hook.notice': { paths: ['a.ts'] },
    'hook.restore': { paths: ['free/a.ts'] },
    'reserve.ask': { paths: ['a.ts'], reason: 'sample' },
    'now.get': { limit: 5 },
    'stuck.get': { limit: 5 },
    'span.list': { since_seconds: 60 },
  } satisfies Record<Name, object>
  return new Map(Object.entries(samples)) as Map<Name, object>
}
