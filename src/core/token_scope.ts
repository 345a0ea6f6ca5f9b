import { admits, type Caller } from './caller.ts'
import type { Task, TokenScope } from './rows.ts'

/** A caller whose token is bound. */
export type Scoped = Caller & { scope: TokenScope }

export const isScoped = (caller: Caller): caller is Scoped => caller.scope !== undefined

export const hasUser = ({ users }: TokenScope, user: string | null) =>
  users === null || users.includes(user ?? '')

export const hasProject = ({ projects }: TokenScope, project: string | null) =>
  projects === null || projects.includes(project ?? '')

export const hasTask = (scope: TokenScope, { id, user, project }: Task) =>
  id === scope.task || (hasUser(scope, user) && hasProject(scope, project))

/** The token of a run works on its own task, and on what its agent made itself. */
export const mayChange = ({ id, created_by }: Task, { scope, agent }: Scoped) =>
  scope.task === null || id === scope.task || admits(agent, created_by)

/** Whether `caller` may claim this task when it asks for any. */
export const mayTake = (task: Task, caller: Caller) =>
  !isScoped(caller) || (hasTask(caller.scope, task) && mayChange(task, caller))
