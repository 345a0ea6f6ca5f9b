import { createMcpHandler } from '@modelcontextprotocol/server'
import { Refusal } from '../../core/refusal.ts'
import { sizeOf } from '../../core/text.ts'
import { type Bearer, callerFor, refuseRole, type Waiter } from '../../operations/access.ts'
import { call } from '../../operations/call.ts'
import { ownProcess } from '../../machine/process.ts'
import type { Store } from '../../stores/writer/store.ts'
import { toolBodyMax } from '../body_bound.ts'
import { noteRefusal } from '../note_refusal.ts'
import { type ToolAsk, mcpServer } from './server.ts'

/** More than one token may open: see `LIMITS`. */
const STREAMS_MAX = 2_000

/** A request as the door of HTTP has read it: see there. */
interface Asked {
  bearer: Bearer
  wait: Waiter
  said: unknown
  hold: (size: number) => void
}

/** What a request brings along, past the SDK. */
interface Sent extends Asked {
  request: Request
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
        const sent = authInfo!.extra as unknown as Sent
        const core = new URL(sent.request.url).searchParams.get('tools') === 'core'
        const damage = async () => store.damage?.message
        return mcpServer(ask(sent), version, core ? 'core' : 'all', damage)
      },
      { maxRequestBodySize: toolBodyMax(), maxSubscriptions: STREAMS_MAX },
    )
  // Made when the first agent comes: to know how long a call may be, it reads all schemas.
  let handler: ReturnType<typeof make> | undefined
  // Streams that clients listen on end with the server; until then each is an open connection.
  stopping.addEventListener('abort', () => void handler?.close().catch(() => undefined))
  return (request: Request, asked: Asked): Promise<Response> => {
    const { bearer, said } = asked
    const extra = { ...asked, request } satisfies Sent
    const authInfo = { token: '', clientId: bearer.agent, scopes: [bearer.role], extra }
    handler ??= make()
    return handler.fetch(request, { authInfo, ...(said !== undefined && { parsedBody: said }) })
  }
}

type Asking = (asked: Asked) => ToolAsk

/**
 * Asks on behalf of a bearer. A wait ends when its connection closes, which the SDK tells, when its
 * token stops counting, or when the server stops. A 2025 client that cancels and keeps its
 * connection cannot be heard: its cancellation is a request of its own, and nothing says which one
 * it belongs to.
 */
function askingFor(store: Store, stopping: AbortSignal): Asking {
  const asking: Asking = (asked) => async (operation, input, agent, cancelled) => {
    const { budget } = asked.bearer
    // One message may bring many calls: each has its turn.
    const turn = await budget?.turn(operation.name)
    try {
      const bearer = { ...asked.bearer, uses: budget && turn && { budget, turn } }
      refuseRole(bearer, operation)
      const caller = callerFor(bearer, agent, { waiter: ownProcess() })
      // Only a wait can be given up; a signal costs something, and most asks do not wait.
      const ask = (signal?: AbortSignal) => call(store, operation, input, caller, signal)
      if (input['wait_seconds']) return await asked.wait([cancelled, stopping], ask)
      const answer = await ask()
      if (operation.effect === 'read') asked.hold(sizeOf(answer))
      return answer
    } finally {
      turn?.end()
    }
  }
  return (asked) => (operation, input, agent, cancelled) =>
    asking(asked)(operation, input, agent, cancelled).catch((error: unknown) => {
      if (error instanceof Refusal) noteRefusal(store, error, operation.name, asked.bearer.agent)
      throw error
    })
}
