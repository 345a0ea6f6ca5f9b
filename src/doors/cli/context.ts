import { admits, type Caller, leaseUnder } from '../../core/caller.ts'
import type { Waiting } from '../../core/locks/lock.ts'
import { Refusal } from '../../core/refusal.ts'
import { call } from '../../operations/call.ts'
import { agentId } from '../../operations/fields.ts'
import { type Fields, type Operation, parseInput } from '../../operations/operation.ts'
import type { RegisteredName } from '../../operations/registry.ts'
import { newRequestId } from '../../machine/digest.ts'
import { loginName } from '../../machine/login.ts'
import { folderOf, openStore, type Place, placeOf } from '../../stores/open.ts'
import { host, ownProcess } from '../../machine/process.ts'
import type { ReachAsk, Unanswered } from '../../reach/ask.ts'
import { askHttp } from '../../reach/http.ts'
import { nobodyAnswers, Reach } from '../../reach/reach.ts'
import { findDaemon, standing } from '../../reach/server_file.ts'
import {
  type CallSource,
  type Family,
  familyHere,
  namedAgent,
  sessionOf,
} from '../../machine/family.ts'
import type { Meaning } from '../../stores/port.ts'
import type { Store } from '../../stores/writer/store.ts'
import { refuseAdmin, refuseStranger, refuseWithToken } from './family.ts'
import { settleMemory } from './commands/memory_config.ts'
import { io } from '../io.ts'

export interface GlobalOptions {
  json?: boolean
  agent?: string | undefined
  force?: boolean
}

/** How a call is made, beyond what is asked. */
interface How {
  caller?: Caller
  signal?: AbortSignal
  /** Of the lease that it keeps: nobody waits for a silent daemon while that runs out. */
  ttl_ms?: number
}

/** What every command needs: who is asking, where the state is, and how to answer. */
export interface Context {
  env: NodeJS.ProcessEnv
  json: boolean
  caller: Caller
  /** The same, found anew for a call: the hooks of our agent may have said who it is since. */
  callerNow(asked?: CallSource): Caller
  /** The agents that this command may speak for, as far as hooks have said. */
  family(): Family
  place: Place
  /** Calls an operation: through the daemon if one runs, else on the store itself. */
  call<F extends Fields, O>(
    operation: Operation<F, O>,
    input: Record<string, unknown>,
    how?: How,
  ): Promise<Exclude<O, Waiting>>
  /** Opened when first asked for, closed by `main`. */
  store(): Store
  close(): Promise<void>
}

interface CommandAsk extends ReachAsk {
  operation: Operation
}

/** Nobody asks for this: `run` says it of the command that it started itself. */
const OWN: RegisteredName = 'lock.name_group'

/** What the configuration of memory has a say in. */
const WRITES_NOTES: ReadonlySet<string> = new Set<RegisteredName>(['memory.put', 'memory.delete'])

export function contextOf(options: GlobalOptions, given: NodeJS.ProcessEnv, cwd: string): Context {
  const place = placeOf(given, cwd)
  const env = standing(given, folderOf(place))
  const familyNow = (asked?: CallSource) => familyHere(folderOf(place), env, asked)
  const family = () => (env['LEASEHOLD_TOKEN'] ? NONE : familyNow())
  const callerNow = (asked?: CallSource) => callerOf(options, env, familyNow(asked))
  const caller = callerNow()
  let opened: Store | undefined
  let noted = false
  const store = () => {
    refuseWithToken(env)
    return (opened ??= openStore(place))
  }
  const close = async () => opened?.close()
  const direct = async ({ operation, input, caller: who, signal }: CommandAsk) => {
    if (operation.lookup) store().meaning ??= await meaningOf(store(), place, env)
    if (WRITES_NOTES.has(operation.name)) await settleMemory(place, env, store())
    return call(store(), operation, input, who, signal)
  }
  const reach = new Reach<CommandAsk>({
    find: () => findDaemon(env, folderOf(place)),
    send: askHttp,
    open: async () => ({ ask: direct, close }),
    passBy: (why) => {
      if (options.json || why.next === '' || noted) return
      noted = true
      note(why)
    },
    giveUp: (daemon, why, { signal }) => {
      if (signal?.aborted) return new Refusal('held', 'Interrupted: no longer waiting')
      return nobodyAnswers(daemon, why, env['LEASEHOLD_RUN'] ? WITHOUT_DOOR : WITHOUT_SERVER)
    },
  })
  return {
    env,
    json: options.json ?? false,
    caller,
    callerNow,
    family,
    place,
    call: <F extends Fields, O>(
      operation: Operation<F, O>,
      input: Record<string, unknown>,
      how: How = {},
    ) => {
      // A reply that gets lost can be asked for again only under the id it was asked with.
      const asked = operation.effect === 'write' ? { request_id: newRequestId(), ...input } : input
      const ask = { operation: operation as unknown as Operation, input: asked, caller, ...how }
      const asking = async () => {
        const isAdmins = operation.role === 'admin' || ask.caller.admin
        if (isAdmins && operation.name !== OWN) refuseAdmin(family(), operation.name)
        return reach.ask(ask)
      }
      const answer = asking().catch((error) => askAgain(error, asking))
      return answer as Promise<Exclude<O, Waiting>>
    },
    store,
    close,
  }
}

/** Loaded by those who search only: no other command pays for it. */
async function meaningOf(store: Store, place: Place, env: NodeJS.ProcessEnv): Promise<Meaning> {
  const { DirectMeaning } = await import('../../daemon/main.ts')
  return new DirectMeaning(store, place, env)
}

/** A commit of unknown outcome is settled by asking once more under the same request id. */
function askAgain<T>(error: unknown, ask: () => Promise<T>): Promise<T> {
  if (error instanceof Refusal && error.details['outcome'] === 'unknown') return ask()
  throw error
}

const WITHOUT_SERVER = 'Start it (leasehold up), or unset LEASEHOLD_TOKEN to use the store itself.'
const WITHOUT_DOOR =
  'Go on without it: your run is kept and its end is recorded. Its dispatcher, started again, is ' +
  'at the same address.'

/** A daemon that is there and says nothing is for a person to look at; the command goes on. */
function note({ message, next }: Unanswered): void {
  io().stderr.write(`leasehold: ${message}; the store itself was asked\n  next: ${next}\n`)
}

/** A token says who it stands for, whatever hooks have said. */
const NONE: Family = { agents: [], alone: false, process: null }

/**
 * `--agent`, else what a person or runner set, else the agent that we descend from as its hooks or
 * its client say, else an id that every terminal shares. With a token it is not ours to say.
 */
function callerOf(options: GlobalOptions, env: NodeJS.ProcessEnv, family: Family): Caller {
  const { LEASEHOLD_AGENT: set, LEASEHOLD_TOKEN: token } = env
  const session = sessionOf(family)
  const named = token && set === undefined ? undefined : namedAgent(set, session)
  const said = options.agent ?? named
  if (said !== undefined) {
    parseInput({ agent: agentId }, { agent: said })
    if (!token) refuseStranger(family, said)
  }
  const isOurs = session && (token || said === undefined || admits(session.agent, said))
  return {
    agent: said ?? `cli:${loginName()}@${host}`,
    given: said !== undefined,
    // What an agent with hooks holds is held by its own process, not by ours; but a place in a line
    // is ours, and goes with us.
    ...(isOurs && session.process
      ? { process: session.process, waiter: ownProcess() }
      : { process: ownProcess() }),
    // The files are this login's own, so it could do anything; it does so only when it says so.
    admin: options.force ?? false,
    under: leaseUnder(env),
  }
}
