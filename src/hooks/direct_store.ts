import type { Caller } from '../core/caller.ts'
import { call } from '../operations/call.ts'
import * as hooks from '../operations/hooks.ts'
import * as locks from '../operations/locks.ts'
import type { Operation } from '../operations/operation.ts'
import * as reservations from '../operations/reservations.ts'
import * as tasks from '../operations/tasks.ts'
import { folderOf, openStore, placeOf } from '../stores/open.ts'

const { touch, check, list, release } = reservations

/** All that a hook ever asks. */
const ASKED = new Map(
  [touch, check, list, release, locks.lockStatus, tasks.list, hooks.bypass].map((each) => [
    each.name as string,
    each as unknown as Operation,
  ]),
)

/** The store itself, for when no daemon answers. In a bundle of its own: it takes long to load. */
export function openDirect(env: NodeJS.ProcessEnv, cwd: string) {
  const store = openStore(placeOf(env, cwd))
  return {
    ask: (name: string, input: Record<string, unknown>, caller: Caller): Promise<unknown> =>
      call(store, ASKED.get(name)!, input, caller),
    close: () => store.close(),
  }
}

export function folderIn(env: NodeJS.ProcessEnv, cwd: string): string {
  return folderOf(placeOf(env, cwd))
}
