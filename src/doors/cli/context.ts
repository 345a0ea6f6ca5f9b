import { userInfo } from 'node:os'
import type { Caller } from '../../core/caller.ts'
import { agentId } from '../../operations/fields.ts'
import { parseInput } from '../../operations/operation.ts'
import { type Place, openStore, placeOf } from '../../stores/open.ts'
import { host, ownProcess } from '../../stores/process.ts'
import type { Store } from '../../stores/store.ts'

export interface GlobalOptions {
  json?: boolean
  agent?: string
  force?: boolean
}

/** What every command needs: who is asking, where the state is, and how to answer. */
export interface Context {
  env: NodeJS.ProcessEnv
  json: boolean
  caller: Caller
  place: Place
  /** Opened when first asked for, closed by `main`. */
  store(): Store
  close(): Promise<void>
}

export function contextOf(options: GlobalOptions, env: NodeJS.ProcessEnv, cwd: string): Context {
  const place = placeOf(env, cwd)
  let store: Store | undefined
  return {
    env,
    json: options.json ?? false,
    caller: callerOf(options, env),
    place,
    store: () => (store ??= openStore(place)),
    close: async () => store?.close(),
  }
}

/** `--agent`, else what a person, hook or runner set, else an id that every terminal shares. */
function callerOf(options: GlobalOptions, env: NodeJS.ProcessEnv): Caller {
  const said = options.agent ?? env['LEASEHOLD_AGENT']
  if (said !== undefined) parseInput({ agent: agentId }, { agent: said })
  return {
    agent: said ?? `cli:${userInfo().username}@${host}`,
    given: said !== undefined,
    process: ownProcess(),
    // The files are this login's own, so it could do anything; it does so only when it says so.
    admin: options.force ?? false,
    under: leaseUnder(env),
  }
}

/** The lease that a surrounding `leasehold run` holds for us. */
function leaseUnder(env: NodeJS.ProcessEnv): Caller['under'] {
  const lock = env['LEASEHOLD_LOCK']
  const fence = Number(env['LEASEHOLD_FENCE'])
  return lock && Number.isSafeInteger(fence) && fence > 0 ? { lock, fence } : null
}
