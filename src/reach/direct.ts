import { plantAsTold } from '../machine/test_build.ts'
import { call } from '../operations/call.ts'
import * as hooks from '../operations/hooks.ts'
import * as locks from '../operations/locks.ts'
import type { Operation } from '../operations/operation.ts'
import * as reservations from '../operations/reservations.ts'
import * as runs from '../operations/runs.ts'
import * as tasks from '../operations/tasks.ts'
import * as worktrees from '../operations/worktrees.ts'
import { openStore, placeOf } from '../stores/open.ts'
import type { ReachAsk } from './ask.ts'
import type { Direct } from './reach.ts'

plantAsTold()

/** All that a hook, a runner or a keeper ever asks: to load every operation would take long. */
const ASKED = [
  ...[reservations.touch, reservations.check, reservations.list, reservations.release],
  ...[locks.lockStatus, locks.renew, tasks.list, hooks.bypass, hooks.notice],
  ...[runs.start, runs.finish, runs.get, worktrees.enter, worktrees.record],
]

/**
 * The store itself, for when no daemon answers. In a bundle of its own: most of the time one does.
 */
export function openDirect(env: NodeJS.ProcessEnv, cwd: string): Direct<ReachAsk> {
  const operations = new Map(
    (ASKED as unknown[] as Operation[]).map((each) => [each.name as string, each]),
  )
  const store = openStore(placeOf(env, cwd))
  return {
    ask: ({ operation, input, caller }) =>
      call(store, operations.get(operation.name)!, input, caller),
    close: () => store.close(),
  }
}
