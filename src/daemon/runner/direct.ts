import type { Caller } from '../../core/caller.ts'
import { plant, type Promised } from '../../core/planted.ts'
import { call } from '../../operations/call.ts'
import * as locks from '../../operations/locks.ts'
import type { Operation } from '../../operations/operation.ts'
import * as runs from '../../operations/runs.ts'
import { folderOf, openStore, placeOf } from '../../stores/open.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

// A bundle of its own has a switch of its own: see the command line's.
if (typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD) {
  plant(process.env['LEASEHOLD_PLANT'] as Promised | undefined)
}

/** All that a runner ever asks. */
const ASKED = new Map(
  [runs.start, runs.finish, runs.get, locks.renew].map((each) => [
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
