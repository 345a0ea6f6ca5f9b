import type { output } from 'zod/mini'
import type { Operation, RawInput } from './operation.ts'
import * as agents from './agents.ts'
import * as events from './events.ts'
import * as conflicts from './conflicts.ts'
import * as duplicates from './duplicates.ts'
import * as hooks from './hooks.ts'
import * as landings from './landings.ts'
import * as locks from './locks.ts'
import * as memory from './memory.ts'
import * as reservations from './reservations.ts'
import * as queue from './queue.ts'
import * as runs from './runs.ts'
import * as stats from './stats.ts'
import * as search from './search.ts'
import * as tasks from './tasks.ts'
import * as tokens from './tokens.ts'
import * as worktrees from './worktrees.ts'

/** Everything that can be asked. A door that wants to know what exists reads this only. */
export const registry = [
  locks.acquire,
  locks.renew,
  locks.release,
  locks.lockStatus,
  locks.listLocks,
  locks.forceReleaseLock,
  locks.handOffLock,
  locks.nameGroupOfLock,
  locks.explainLock,
  tasks.create,
  tasks.get,
  tasks.list,
  tasks.claim,
  tasks.setStatus,
  tasks.edit,
  tasks.explain,
  queue.add,
  queue.status,
  queue.list,
  queue.cancel,
  queue.retry,
  queue.pause,
  queue.resume,
  queue.limit,
  queue.cleanup,
  queue.release,
  runs.list,
  runs.get,
  runs.start,
  runs.finish,
  landings.add,
  landings.list,
  landings.get,
  landings.cancel,
  reservations.add,
  reservations.release,
  reservations.list,
  reservations.check,
  reservations.touch,
  reservations.ask,
  agents.listAgents,
  agents.beat,
  tokens.create,
  tokens.list,
  tokens.revoke,
  events.list,
  runs.output,
  tasks.peek,
  locks.peek,
  locks.waiters,
  memory.put,
  memory.get,
  memory.list,
  memory.history,
  memory.remove,
  memory.prune,
  conflicts.list,
  conflicts.resolve,
  stats.get,
  stats.listAlerts,
  search.search,
  search.context,
  search.status,
  search.retry,
  duplicates.list,
  duplicates.resolve,
  hooks.bypass,
  hooks.notice,
  hooks.restore,
  stats.now,
  stats.stuck,
  events.spans,
  worktrees.list,
  worktrees.get,
  worktrees.enter,
  worktrees.record,
] as const

export type Registered = (typeof registry)[number]
export type RegisteredName = Registered['name']

type Of<N extends RegisteredName> = Extract<Registered, { name: N }>

/** What the operation of this name may be asked with. */
export type InputOf<N extends RegisteredName> = RawInput<Of<N>['input']>

/** What the operation of this name answers. */
export type AnswerOf<N extends RegisteredName> = output<ReturnType<Of<N>['output']>>

/**
 * What a door makes of answers, by the names of operations. Where an operation is renamed, or
 * answers otherwise, nothing compiles until what is said of it here follows.
 */
export type ByAnswer<Said> = { [N in RegisteredName]?: (answer: AnswerOf<N>) => Said }

/** A field of one operation: `lock.acquire.priority`. */
export type RegisteredField = {
  [N in RegisteredName]: `${N}.${keyof Of<N>['input'] & string}`
}[RegisteredName]

/** A field of that name, whichever operations have it. */
export type FieldName = { [N in RegisteredName]: keyof Of<N>['input'] & string }[RegisteredName]

/** The same, for doors that treat all operations alike. */
export const operations = registry as unknown as readonly Operation[]

/** Those that pages describe. */
export const described = operations.filter(({ internal }) => !internal)

export const operationNamed = new Map(operations.map((each) => [each.name as string, each]))

/** The operation of a name that is written in the code: a name that none has does not compile. */
export const registered = (name: RegisteredName): Operation => operationNamed.get(name)!
