import type { Share } from '../../src/core/schema/queue.ts'
import type { Run, TaskFields } from '../../src/core/schema/task.ts'
import type { Caller } from '../../src/core/caller.ts'
import type { Claim } from '../../src/core/tasks/claim.ts'
import {
  dispatchAll,
  dispatchNext,
  type FinishRun,
  finishRun,
  registerDispatcher,
  type StartRun,
  startRun,
} from '../../src/core/queue/dispatch.ts'
import { settingKey } from '../../src/core/queue/host_settings.ts'
import { acquireLocks } from '../../src/core/locks/lock.ts'
import { claimQueued, enqueueTask, positionOf } from '../../src/core/queue/queue.ts'
import { shareOf } from '../../src/core/queue/share.ts'
import { queueStatus, wholeStatus } from '../../src/core/queue/status.ts'
import type { Queued, Settings, SettingValue } from '../../src/core/queue/rows.ts'
import { settleAfterRestore } from '../../src/core/locks/restore.ts'
import type { ProcessRef } from '../../src/core/rows.ts'
import {
  cancelTask,
  type CleanUp,
  cleanUp,
  releaseUser,
  retryTask,
} from '../../src/core/queue/cancel.ts'
import {
  applySettings,
  type Pause,
  pauseQueue,
  type SetLimit,
  setLimit,
} from '../../src/core/queue/settings.ts'
import type { View } from '../../src/core/view.ts'
import { lookInto, QueueRows } from '../simulation/queue_look.ts'
import { FIELDS, grantOf, type LeaseOptions, Verbs } from './verbs.ts'

export interface EnqueueOptions extends Partial<TaskFields>, Partial<Queued> {
  id?: string
}

export interface DispatcherOptions {
  projects?: string[]
  slots_max?: number
  process?: ProcessRef
  ttl_ms?: number
}

const QUEUED: Queued = {
  agent_command: null,
  time_limit_ms: null,
  retries: 0,
  failed: 0,
  lost: 0,
}

export const ADMIN: Caller = {
  agent: 'admin',
  given: true,
  process: null,
  admin: true,
  under: null,
}

/** The id of the agent that runs a task for a dispatcher. */
const runner = (agent: string): Caller => ({
  agent,
  given: true,
  process: null,
  admin: false,
  under: null,
})

/** What a config.json says of the queue, by the keys of the store. */
export interface QueueSettings {
  user_max: 1 | null
  lock_timeout_ms: number
  limits: ReadonlyMap<string, number | null>
  users: ReadonlyMap<string, { weight?: number; max?: number | null }>
}

function settingsOf({ user_max, lock_timeout_ms, limits, users }: Partial<QueueSettings>) {
  const all: [string, SettingValue | undefined][] = []
  const of = 'per_user_serialization'
  if (user_max !== undefined) all.push([settingKey(of, 'enabled'), user_max === 1])
  if (lock_timeout_ms !== undefined) {
    all.push([settingKey(of, 'lock_timeout_seconds'), lock_timeout_ms / 1000])
  }
  for (const [key, max] of limits ?? []) {
    const [kind, ...name] = key.split(':')
    const path = kind === 'pool' ? ['pool'] : [`${kind}s`, name.join(':')]
    all.push([settingKey(...path, 'limit'), max])
  }
  for (const [user, { weight, max }] of users ?? []) {
    all.push([settingKey('users', user, 'weight'), weight])
    all.push([settingKey('users', user, 'limit'), max])
  }
  return Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Settings
}

/** Every run gets a token of its own. */
let tokens = 0

/** What can be asked of the queue, by name and with defaults, beside all that agents may ask. */
export class QueueVerbs extends Verbs {
  enqueue(options: EnqueueOptions = {}, caller: Caller = ADMIN) {
    return this.store.write((view) => enqueueTask(view, enqueueAsk(options), caller))
  }

  position(id: string): Promise<number> {
    return this.store.read((view) => positionOf(view, view.get('task', id)!))
  }

  /** A dispatcher takes its role: its lock, and what it serves. */
  register(name: string, options: DispatcherOptions = {}): Promise<void> {
    const { projects = ['web', 'api'], slots_max = 4, process = null } = options
    const id = `dispatcher:${name}`
    const caller = { ...runner(name), process }
    const grant = grantOf({ ttl_ms: options.ttl_ms ?? 24 * 3600_000 }, caller)
    const row = { id, host: name, pid: 1, slots_max, projects, started_at: '' }
    return this.store.write((view) => {
      acquireLocks(view, { ...grant, names: [id], priority: 0 }, caller)
      registerDispatcher(view, row)
    })
  }

  dispatch(name: string, process: ProcessRef, ttl_ms = 60_000): Promise<Claim | undefined> {
    const ask = this.dispatchAsk(name, process, ttl_ms)
    return this.store.write((view) => dispatchNext(view, ask))
  }

  /** As many at once as there are free slots. */
  dispatchAll(name: string, process: ProcessRef, most = 32): Promise<Claim[]> {
    const { token_hash: _one, ...ask } = this.dispatchAsk(name, process, 60_000)
    const token_hashes = Array.from({ length: most }, (_, i) => `token-${name}-${tokens}.${i}`)
    return this.store.write((view) => dispatchAll(view, { ...ask, token_hashes }))
  }

  private dispatchAsk(name: string, process: ProcessRef, ttl_ms: number) {
    tokens += 1
    const token_hash = `token-${name}-${tokens}`
    const whose = { dispatcher: `dispatcher:${name}`, process, agentFor: () => 'run' }
    return { ...whose, ttl_ms, token_hash }
  }

  /** An agent asks for whatever the queue has next. */
  nextQueued(caller: Caller, options: LeaseOptions & { projects?: string[] } = {}) {
    const projects = options.projects && new Set(options.projects)
    const ask = { ...grantOf(options, caller), projects, as: () => caller }
    return this.store.write((view) => claimQueued(view, ask))
  }

  startRun(run: Run, more: Pick<StartRun, 'process' | 'group'> & Partial<StartRun>): Promise<Run> {
    const ask = { id: run.id, fence: run.fence, ...more }
    return this.store.write((view) => startRun(view, ask, runner(run.agent)))
  }

  finishRun(run: Run, more: Partial<FinishRun> = {}): Promise<Run> {
    const exit = { exit_code: 0, signal: null, reason: null }
    const ask = { id: run.id, fence: run.fence, ...exit, ...more }
    return this.store.write((view) => finishRun(view, ask, runner(run.agent)))
  }

  cancel(id: string, caller: Caller = ADMIN) {
    return this.store.write((view) => cancelTask(view, { id }, caller))
  }

  retry(id: string, caller: Caller = ADMIN) {
    return this.store.write((view) => retryTask(view, id, caller))
  }

  pause(ask: Partial<Pause> = {}): Promise<void> {
    return this.store.write((view) => pauseQueue(view, { paused: true, ...ask }, ADMIN))
  }

  resume(ask: Partial<Pause> = {}): Promise<void> {
    return this.store.write((view) => pauseQueue(view, { paused: false, ...ask }, ADMIN))
  }

  limit(ask: SetLimit): Promise<void> {
    return this.store.write((view) => setLimit(view, ask, ADMIN))
  }

  /** The config.json of a host is read. */
  settings(settings: Partial<QueueSettings> = {}, host = 'sim'): Promise<void> {
    return this.store.write((view) => applySettings(view, host, settingsOf(settings)))
  }

  /** Whose each setting is that some config.json names, as `setting: host`. */
  settingsOwned(): Promise<string[]> {
    return this.store.read((view) =>
      [...view.scan('host_settings_of', 'queue')]
        .flatMap(({ source, settings }) =>
          Object.keys(settings).map((key) => `${key.split('\n').join('.')}: ${source}`),
        )
        .toSorted(),
    )
  }

  /** What a user may have. */
  share(user: string): Promise<Share> {
    return this.store.read((view) => shareOf(view, user))
  }

  cleanUp(ask: CleanUp = {}): Promise<Run[]> {
    return this.store.write((view) => cleanUp(view, ask, ADMIN))
  }

  releaseUser(user: string, task_id?: string): Promise<string[]> {
    return this.store.write((view) => releaseUser(view, { user, task_id }, ADMIN))
  }

  async restore(epoch: number): Promise<void> {
    await this.store.write((view) => settleAfterRestore(view, epoch))
  }

  status() {
    return this.store.read((view) => queueStatus(view))
  }

  whole() {
    return this.store.read((view) => wholeStatus(view))
  }

  run(id: string): Promise<Run> {
    return this.store.read((view) => view.get('run', id)!)
  }

  /** How much of every limit is taken, where any is: `{ pool: 1, 'user:ann': 1 }`. */
  used(): Promise<Record<string, number>> {
    return this.store.read((view) => usedIn(view))
  }
}

export function enqueueAsk(options: EnqueueOptions) {
  const { agent_command, time_limit_ms, retries, failed, lost, ...said } = options
  const given = { agent_command, time_limit_ms, retries, failed, lost }
  const queue = { ...QUEUED, ...onlyDefined(given) }
  return { ...FIELDS, title: 'x', project: 'web', user: 'ann', ...said, queue }
}

function onlyDefined<T extends object>(given: T) {
  const kept = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(kept) as { [K in keyof T]-?: Exclude<T[K], undefined> }
}

function usedIn(view: View): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { key, used } of view.scan('limits', '')) if (used !== 0) found[key] = used
  for (const { user, running } of new QueueRows(lookInto(view)).shares.values()) {
    if (running.length > 0) found[`user:${user}`] = running.length
  }
  return found
}
