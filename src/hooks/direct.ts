import type { Caller } from '../core/caller.ts'
import { call } from '../operations/call.ts'
import type { Operation } from '../operations/operation.ts'
import { openStore, placeOf } from '../stores/open.ts'

/**
 * The store itself, for when no daemon answers: for programs that ask a few operations only, and
 * would take long to load them all.
 */
export function openDirectly(asked: readonly unknown[], env: NodeJS.ProcessEnv, cwd: string) {
  const operations = new Map((asked as Operation[]).map((each) => [each.name as string, each]))
  const store = openStore(placeOf(env, cwd))
  return {
    ask: (name: string, input: Record<string, unknown>, caller: Caller): Promise<unknown> =>
      call(store, operations.get(name)!, input, caller),
    close: () => store.close(),
  }
}
