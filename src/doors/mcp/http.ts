import { createMcpHandler } from '@modelcontextprotocol/server'
import { Refusal } from '../../core/refusal.ts'
import { type Bearer, callerFor, refuseRole, type Waiter } from '../../operations/access.ts'
import { call } from '../../operations/call.ts'
import { ownProcess } from '../../machine/process.ts'
import type { Store } from '../../stores/writer/store.ts'
import { toolBodyMax } from '../body_bound.ts'
import { noteRefusal } from '../note_refusal.ts'
import { type ToolAsk, mcpServer } from './server.ts'

/** More than one token may open: see `LIMITS`. */
const STREAMS_MAX = 2_000

/** What a request brings along, past the SDK. */
interface Sent {
  bearer: Bearer
  request: Request
  wait: Waiter
}

/**
 * MCP over HTTP. Every request stands alone, whichever protocol the client speaks: who is asking
 * comes from its token and its arguments. Host, Origin and token are checked before it gets here.
 * `/mcp?tools=core` offers the few tools that most agents need.
 */
export function mcpHandler(store: Store, version: string, stopping: AbortSignal) {
  const ask = askingFor(store, stopping)
  const make = () =>
    createMcpHandler(
      ({ authInfo }) => {
        const { bearer, request, wait } = authInfo!.extra as unknown as Sent
        const core = new URL(request.url).searchParams.get('tools') === 'core'
        const damage = async () => store.damage?.message
        return mcpServer(ask(bearer, wait), version, core ? 'core' : 'all', damage)
      },
      { maxRequestBodySize: toolBodyMax(), maxSubscriptions: STREAMS_MAX },
    )
  // Made when the first agent comes: to know how long a call may be, it reads all schemas.
  let handler: ReturnType<typeof make> | undefined
  // Streams that clients listen on end with the server; until then each is an open connection.
  stopping.addEventListener('abort', () => void handler?.close().catch(() => undefined))
  return (request: Request, bearer: Bearer, wait: Waiter): Promise<Response> => {
    const extra = { bearer, request, wait } satisfies Sent
    const authInfo = { token: '', clientId: bearer.agent, scopes: [bearer.role], extra }
    handler ??= make()
    return handler.fetch(request, { authInfo })
  }
}

type Asking = (bearer: Bearer, wait: Waiter) => ToolAsk

/**
 * Asks on behalf of a bearer. A wait ends when its connection closes, which the SDK tells, when its
 * token stops counting, or when the server stops. A 2025 client that cancels and keeps its
 * connection cannot be heard: its cancellation is a request of its own, and nothing says which one
 * it belongs to.
 */
function askingFor(store: Store, stopping: AbortSignal): Asking {
  const asking: Asking = (bearer, wait) => async (operation, input, agent, cancelled) => {
    refuseRole(bearer, operation)
    const caller = callerFor(bearer, agent, { waiter: ownProcess() })
    // Only a wait can be given up; a signal costs something, and most asks do not wait.
    const asked = (signal?: AbortSignal) => call(store, operation, input, caller, signal)
    return input['wait_seconds'] ? wait([cancelled, stopping], asked) : asked()
  }
  return (bearer, wait) => (operation, input, agent, cancelled) =>
    asking(bearer, wait)(operation, input, agent, cancelled).catch((error: unknown) => {
      if (error instanceof Refusal) noteRefusal(store, error, operation.name, bearer.agent)
      throw error
    })
}
