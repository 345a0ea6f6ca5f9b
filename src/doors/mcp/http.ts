import { createMcpHandler } from '@modelcontextprotocol/server'
import { Refusal } from '../../core/refusal.ts'
import { type Bearer, callerFor, refuseRole } from '../../operations/access.ts'
import { call } from '../../operations/call.ts'
import { ownProcess } from '../../stores/process.ts'
import type { Store } from '../../stores/store.ts'
import { type Ask, mcpServer } from './server.ts'

const BODY_MAX = 1024 * 1024
/** Calls that may be under way at once: each may wait for a lock. */
const OPEN_MAX = 5_000

/**
 * MCP over HTTP. Every request stands alone, whichever protocol the client speaks: who is asking
 * comes from its token and its arguments. Host, Origin and token are checked before it gets here.
 * `/mcp?tools=core` offers the few tools that most agents need.
 */
export function mcpHandler(store: Store, version: string) {
  const ask = askingFor(store)
  const handler = createMcpHandler(
    ({ authInfo, requestInfo }) => {
      const { bearer } = authInfo!.extra as { bearer: Bearer }
      const core = requestInfo && new URL(requestInfo.url).searchParams.get('tools') === 'core'
      return mcpServer(ask(bearer), version, core ? 'core' : 'all')
    },
    {
      maxRequestBodySize: BODY_MAX,
      // Our lists never change and nobody can subscribe: a stream would be held open for nothing.
      maxSubscriptions: 0,
    },
  )
  return (request: Request, bearer: Bearer): Promise<Response> => {
    const authInfo = { token: '', clientId: bearer.agent, scopes: [bearer.role], extra: { bearer } }
    return handler.fetch(request, { authInfo })
  }
}

function askingFor(store: Store): (bearer: Bearer) => Ask {
  let open = 0
  return (bearer) => async (operation, input, agent, signal) => {
    refuseRole(bearer, operation)
    const caller = callerFor(bearer, agent, { waiter: ownProcess() })
    if (open >= OPEN_MAX) {
      throw new Refusal('rate_limited', `${OPEN_MAX} calls are under way already`, {
        next: 'Try again in a moment.',
      })
    }
    open += 1
    try {
      return await call(store, operation, input, caller, signal)
    } finally {
      open -= 1
    }
  }
}
