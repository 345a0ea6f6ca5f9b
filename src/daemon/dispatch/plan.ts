import type { Task } from '../../core/rows.ts'
import { Refusal } from '../../core/refusal.ts'
import { host } from '../../machine/process.ts'
import type { AgentConfig, Config } from '../config/config.ts'

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
