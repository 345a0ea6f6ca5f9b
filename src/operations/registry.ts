import * as agents from './agents.ts'
import * as locks from './locks.ts'
import type { Operation } from './operation.ts'
import * as tasks from './tasks.ts'

/** Everything that can be asked. A door that wants to know what exists reads this only. */
export const operations = [
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
  agents.listAgents,
  agents.beat,
] as unknown as Operation[]
