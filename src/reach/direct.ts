import { call } from '../operations/call.ts'
import type { Operation } from '../operations/operation.ts'
import { openStore, placeOf } from '../stores/open.ts'
import type { ReachAsk } from './ask.ts'
import type { Direct } from './reach.ts'

/**
 * The store itself, for when no daemon answers: for programs that ask a few operations only, and
 * would take long to load them all.
 */
export function openDirectly(
  asked: readonly unknown[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): Direct<ReachAsk> {
  const operations = new Map((asked as Operation[]).map((each) => [each.name as string, each]))
  const store = openStore(placeOf(env, cwd))
  return {
    ask: ({ operation, input, caller }) =>
      call(store, operations.get(operation.name)!, input, caller),
    close: () => store.close(),
  }
}
