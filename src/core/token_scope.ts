import type { Task } from './schema/task.ts'
import { admits, type Caller } from './caller.ts'
import type { TokenScope } from './rows.ts'

/** A caller whose token is bound. */
export type Scoped = Caller & { scope: TokenScope }

export const isScoped = (caller: Caller): caller is Scoped => caller.scope !== undefined

type Bound = TokenScope['users' | 'projects']

/** Of what has both a user and a project, as a task has: only what the token is bound to counts. */
const fits = (bound: Bound, name: string | null) =>
  !Array.isArray(bound) || bound.includes(name ?? '')

/** Of what is only of users, or only of projects: what the token is not bound to is shut. */
const has = (bound: Bound, name: string | null) =>
  bound === null ? name === null : fits(bound, name)

export const hasUser = ({ users }: TokenScope, user: string | null) => has(users, user)

export const hasProject = ({ projects }: TokenScope, project: string | null) =>
  has(projects, project)

export const fitsProject = ({ projects }: TokenScope, project: string | null) =>
  fits(projects, project)

type Whose = Pick<Task, 'user' | 'project'>

/** Work of a user in a project. */
export const hasWork = ({ users, projects }: TokenScope, { user, project }: Whose) =>
  fits(users, user) && fits(projects, project)

export const hasTask = (scope: TokenScope, task: Pick<Task, 'id' | 'user' | 'project'>) =>
  task.id === scope.task || hasWork(scope, task)

/** The token of a run works on its own task, and on what its agent made itself. */
export const mayChange = ({ id, created_by }: Task, { scope, agent }: Scoped) =>
  scope.task === null || id === scope.task || admits(agent, created_by)

/** Whether `caller` may claim this task when it asks for any. */
export const mayTake = (task: Task, caller: Caller) =>
  !isScoped(caller) || (hasTask(caller.scope, task) && mayChange(task, caller))
