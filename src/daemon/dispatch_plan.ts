import type { Task } from '../core/rows.ts'
import { limitKey, type QueueSettings } from '../core/settings.ts'
import { Refusal } from '../core/refusal.ts'
import { host } from '../stores/process.ts'
import type { AgentConfig, Config } from './config.ts'

/** There is one dispatcher per host: the lock that makes it the only one is also its name. */
export const dispatcherId = `leasehold:dispatcher:${host}`

/** The agent that a task asks for, or that of its project. */
export function agentNameFor(config: Config, task: Task): string {
  return task.queue?.agent_command ?? config.projects[task.project ?? '']?.agent ?? 'agent'
}

/** The project and agent of a task; refuses an agent that the configuration does not allow it. */
export function planOf(config: Config, task: Task): { cwd: string; agent: AgentConfig } {
  const project = config.projects[task.project ?? '']
  const name = agentNameFor(config, task)
  const agent = config.agents[name]
  if (project && agent && project.agents.includes(name)) return { cwd: project.path, agent }
  const allowed = project?.agents.join(', ') ?? 'none'
  throw new Refusal('forbidden', `project ${task.project} has no agent ${name} (it has ${allowed})`)
}

/** Limits and weights of the configuration, by the keys of the store. */
export function settingsOf(config: Config): QueueSettings {
  const { enabled, lock_timeout_seconds } = config.per_user_serialization
  const limits: [string, number | null][] = [[limitKey.pool, config.pool.limit]]
  for (const [name, { limit }] of Object.entries(config.projects)) {
    limits.push([limitKey.project(name), limit])
  }
  for (const [name, { limit }] of Object.entries(config.groups)) {
    limits.push([limitKey.group(name), limit])
  }
  const users = Object.entries(config.users).map(([name, { weight, limit }]) => {
    return [name, { weight, max: limit }] as const
  })
  return {
    user_max: enabled ? 1 : null,
    lock_timeout_ms: lock_timeout_seconds * 1000,
    limits: new Map(limits),
    users: new Map(users),
  }
}
