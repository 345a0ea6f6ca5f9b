import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { admits, type Caller, sameProcess } from '../../core/caller.ts'
import { isRefusal } from '../../core/refusal.ts'
import { agentId } from '../../operations/fields.ts'
import { lockIn } from '../../operations/grants.ts'
import type { ShownLease } from '../../operations/locks.ts'
import { type Operation, parseInput } from '../../operations/operation.ts'
import { registered } from '../../operations/registry.ts'
import { loginName } from '../../machine/login.ts'
import type { Place } from '../../stores/open.ts'
import { host, ownProcess } from '../../machine/process.ts'
import type { CallSource } from '../../machine/family.ts'
import { keepReserved } from '../guard.ts'
import { placePaths } from '../paths.ts'
import { ToolFences } from './fences.ts'
import { type CallMeta, type ToolAsk, type ToolChoice, mcpServer } from './server.ts'

/** What the command line knows: who asks, and how to reach the daemon or the store. */
interface Reach {
  env: NodeJS.ProcessEnv
  /** CallSource for every call: we are started before the first hook of our agent runs. */
  callerNow(asked?: CallSource): Caller
  /** The process of the client that started us, where what we hold is to be the client's. */
  clientProcess(): Caller['process']
  /** Refuses (`forbidden`) a name that the agent which started us may not use. */
  refuseStranger(agent: string): void
  place: Place
  /** What the agent has to know before all else; empty: nothing. */
  warning: string
  /** What is wrong with the store, as far as that is known here. */
  damage: () => Promise<string | undefined>
  call(
    operation: Operation,
    input: Record<string, unknown>,
    how: { caller: Caller; signal?: AbortSignal; ttl_ms?: number },
  ): Promise<unknown>
}

const RENEWAL = registered('lock.renew')
const LOOK = registered('lock.status')

/**
 * MCP over standard input and output, until the client closes the pipe. Nothing is released then:
 * every lease names this process, so its locks are free when it has ended.
 */
export async function serveMcp(reach: Reach, version: string, choice: ToolChoice): Promise<void> {
  const as = (agent: string): Caller => {
    const own = callerOf(reach)
    return agent === own.agent ? own : { ...own, agent, given: true }
  }
  const fences = new ToolFences({
    expiry: async ({ agent, name, ttl_ms }) => {
      const how = { caller: as(agent), ttl_ms }
      const { lock_expires_at } = (await reach.call(LOOK, { name }, how)) as {
        lock_expires_at: string | null
      }
      return lock_expires_at === null ? null : Date.parse(lock_expires_at)
    },
    // Without a request id: a renewal that is repeated does no harm, and there are many.
    renew: ({ agent, name, fence, ttl_ms }) =>
      reach.call(
        RENEWAL,
        { name, fence, request_id: undefined },
        { caller: as(agent), ttl_ms },
      ) as Promise<ShownLease>,
  })
  const under = new Set<Promise<unknown>>()
  const ask: ToolAsk = (operation, input, agent, signal, meta = {}) => {
    const own = callerOf(reach, meta)
    const caller = agent === undefined ? own : { ...own, agent: agentIn(agent), given: true }
    if (caller.agent !== own.agent && !admits(own.agent, caller.agent)) {
      reach.refuseStranger(caller.agent)
    }
    const asked = placePaths(operation, filled(operation, input, caller, fences), reach.place)
    const end = fences.begin(caller.agent)
    const answer = reach
      .call(operation, asked, { caller, signal })
      .catch((error: unknown) => {
        if (input['fence'] !== undefined || !isGivenBack(error)) throw error
        return reach.call(operation, { ...asked, fence: undefined }, { caller, signal })
      })
      .then((result) => {
        fences.learn(caller.agent, operation, asked, result)
        keepReserved(operation.name, result, reach.place)
        return result
      })
      .finally(end)
    const settled = answer.catch(() => undefined).finally(() => under.delete(settled))
    under.add(settled)
    return answer
  }
  const transport = new StdioServerTransport()
  const closed = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve)
    process.stdin.once('close', resolve)
    process.stdout.once('error', () => resolve())
  })
  const make = () => mcpServer(ask, version, choice, reach.damage, reach.warning)
  const handle = serveStdio(make, { transport })
  await closed
  // A renewal that is still to come would keep this process alive.
  await handle.close().finally(() => fences.close())
  // What waits for a lock was told to stop; it leaves its line before the store is closed.
  await Promise.all(under)
}

/** An id of its own, so that two agents on one machine are two, unless somebody gave it one. */
function callerOf(reach: Reach, meta: CallMeta = {}): Caller {
  const caller = reach.callerNow(askedIn(meta))
  const isOwn = sameProcess(caller.process, ownProcess())
  const process = (isOwn && reach.clientProcess()) || caller.process
  // A token stands for its own agent, and may not name another.
  if (caller.given || reach.env['LEASEHOLD_TOKEN']) return { ...caller, process }
  const agent = `mcp:${loginName()}@${host}:${ownProcess().pid}`
  return { ...caller, agent, given: true }
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

/** Whose call this is, in the words of Codex (`threadId`, `sessionId`) and of Claude Code. */
function askedIn(meta: CallMeta): CallSource {
  const thread = textOf(meta['threadId'])
  const session = textOf(meta['sessionId']) ?? thread
  const subagent = thread === session ? undefined : thread
  return {
    conversation: session === undefined ? undefined : { kind: 'codex', session, subagent },
    call: textOf(meta['claudecode/toolUseId']),
  }
}

function agentIn(named: unknown): string {
  return parseInput({ agent: agentId }, { agent: named }).agent
}

/** Through another door, by the agent itself: what it asks now is not under that lease. */
const isGivenBack = (error: unknown) =>
  isRefusal(error, 'lease_expired') && error.details['reason'] === 'released'

/** Fills in what a model need not know: the process that holds, and the fence it was given. */
function filled(
  operation: Operation,
  input: Record<string, unknown>,
  caller: Caller,
  fences: ToolFences,
): Record<string, unknown> {
  const asked = { ...input }
  if ('process' in operation.input) asked['process'] ??= caller.process ?? ownProcess()
  const lock = lockIn(operation, input)
  if ('fence' in operation.input && lock !== undefined) {
    const { under } = caller
    asked['fence'] ??=
      fences.of(caller.agent, lock) ?? (under?.lock === lock ? under.fence : undefined)
  }
  return asked
}
