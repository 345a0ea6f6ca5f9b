import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Socket } from 'node:net'
import { type Context, Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { byName, inWordsOf, type Say } from '../../core/next.ts'
import { Refusal, REFUSALS } from '../../core/refusal.ts'
import { isScoped } from '../../core/token_scope.ts'
import { wholeOnly } from '../../core/touched.ts'
import type { Event } from '../../core/event.ts'
import {
  type Access,
  type Bearer,
  callerFor,
  refuseRole,
  type Waiter,
  whileValid,
} from '../../operations/access.ts'
import { call } from '../../operations/call.ts'
import { eventsSeen } from '../../operations/events.ts'
import { operationNamed } from '../../operations/registry.ts'
import type { Operation } from '../../operations/operation.ts'
import { tellLate } from '../../operations/pace.ts'
import { readArguments } from '../../operations/spelling.ts'
import type { Store } from '../../stores/writer/store.ts'
import { bodyMaxOf, toolBodyMax } from '../body_bound.ts'
import { broken } from '../broken.ts'
import { noteRefusal } from '../note_refusal.ts'
import { askedWith, callerHeader } from './caller.ts'
import type { EventHub, ReadEvents } from './events.ts'
import { EXPOSITION_TYPE } from './exposition.ts'
import { guard, outgoingOf, readJson, readValue } from './guard.ts'
import { metricsText } from './metrics.ts'
import { openApi, referencePage } from './openapi.ts'
import { addSessions } from './session.ts'
import { UnderWay } from './under_way.ts'
import { addWeb } from './web.ts'

export interface Doors {
  store: Store
  access: Access
  hub: EventHub
  hosts: () => Set<string>
  version: string
  /** Aborted, with a refusal as its reason, when the server stops: waiting calls end with it. */
  stopping: AbortSignal
  /** Told of a connection that has shown a token that counts; may refuse it. */
  know: (socket: Socket | null, budget: object | undefined) => void
  /** The MCP handler, mounted at /mcp behind the same checks. */
  mcp?: (request: Request, asked: McpAsked) => Promise<Response>
}

/** A request by MCP, as far as it was read. */
export interface McpAsked {
  bearer: Bearer
  wait: Waiter
  /** What its body says; undefined where it has none. */
  said: unknown
  /** Counts bytes of an answer until all answers are taken; refuses as `UnderWay.answer` does. */
  hold: (size: number) => void
}

/** Everything that HTTP can reach. Checks who is asking, then calls the operation of that name. */
export function httpApp(doors: Doors): Hono {
  const app = new Hono()
  let open = 0
  app.use('*', guard(doors.hosts))
  app.onError((error, c) => answerRefusal(c, doors, error))
  app.notFound((c) => answerRefusal(c, doors, noRoute(c)))
  app.get('/healthz', (c) => {
    const { damage } = doors.store
    if (damage) throw new Refusal('damaged', damage.message, { next: MEND })
    return c.json({ ok: true })
  })
  app.get('/readyz', async (c) => {
    await doors.store.read(() => undefined)
    return c.json({ ok: true })
  })
  addReference(app, doors)
  addWeb(app)
  addSessions(app, doors)
  addWatching(app, doors, () => open)
  app.on(['GET', 'POST'], '/v1/:name', async (c) => {
    open += 1
    try {
      return await answerCall(c, doors)
    } finally {
      open -= 1
    }
  })
  app.all('/mcp', async (c) => {
    const secret = askedWith(c)
    const bearer = await bearerOf(c, doors, secret, 'mcp')
    const used = new UnderWay(c, bearer)
    if (c.req.method === 'GET') {
      // What a client listens on stays open.
      used.streaming()
      bearer.uses?.turn.end()
    }
    used.reading(toolBodyMax())
    const isPost = c.req.method === 'POST'
    const said = isPost ? await readValue(c.req.raw, toolBodyMax(), bearer.uses?.turn) : undefined
    // Each call takes a turn of its own, of one message or of many.
    bearer.uses?.turn.end()
    const wait: Waiter = (signals, ask) => whileValid(doors.access, secret, signals, ask)
    if (!doors.mcp) return c.notFound()
    return doors.mcp(c.req.raw, { bearer, wait, said, hold: (size) => used.hold(size) })
  })
  return app
}

/** One operation, asked for by its name. */
async function answerCall(c: Context, doors: Doors): Promise<Response> {
  const secret = askedWith(c)
  const operation = operationNamed.get(c.req.param('name') ?? '')
  const bearer = await bearerOf(c, doors, secret, operation?.name ?? 'unknown')
  try {
    return await answerBearer(c, doors, bearer, secret)
  } finally {
    bearer.uses?.turn.end()
  }
}

async function answerBearer(
  c: Context,
  doors: Doors,
  bearer: Bearer,
  secret: string | undefined,
): Promise<Response> {
  const operation = operationOf(c)
  refuseRole(bearer, operation)
  const used = new UnderWay(c, bearer)
  used.reading(bodyMaxOf(operation))
  const body = await inputOf(c, operation, bearer)
  const read = () => readArguments(operation.input, body)
  const { input, agent } = bearer.uses ? bearer.uses.turn.timed(read) : read()
  const known = callerHeader(c.req.header('leasehold-caller'), bearer)
  const caller = callerFor(bearer, agent, known)
  const ask = (signal?: AbortSignal) => call(doors.store, operation, input, caller, signal)
  // Only a wait can be given up; a signal costs something, and most asks do not wait.
  if (!input['wait_seconds']) {
    const answer = inWordsOf((await ask()) as object, byRequest)
    const isRead = operation.effect === 'read'
    if (isRead) warnOfDamage(c, doors.store)
    return await used.answer(answer, isRead)
  }
  used.end()
  const signals = [c.req.raw.signal, doors.stopping]
  return c.json((await whileValid(doors.access, secret, signals, ask)) as object)
}

/** About so long it takes to count everything, and to read and send an event of the past. */
const METRICS_MS = 10
const EVENT_MS = 0.02

const MEND = 'Restore a backup: leasehold db restore BACKUP'

/** A damaged store is read as far as it can be; the reader must know that rows may be missing. */
function warnOfDamage(c: Context, { damage }: Store): void {
  if (damage) c.header('leasehold-damaged', encodeURIComponent(damage.message))
}

/** Who asks, once it is let in: see `Access.letIn`. */
async function bearerOf(
  c: Context,
  doors: Doors,
  secret: string | undefined,
  kind: string,
): Promise<Bearer> {
  const bearer = await doors.access.bearerOf(secret)
  try {
    doors.know(outgoingOf(c).socket, bearer.budget)
  } catch (error) {
    // It is refused as a connection: on its next request it would be asked again.
    c.header('connection', 'close')
    await tellLate()
    throw error
  }
  c.set('agent', bearer.agent)
  const letIn = await doors.access.letIn(bearer, kind)
  const { turn } = letIn.uses ?? {}
  const out = outgoingOf(c)
  // At the latest: a turn that is not over keeps the token's other asks waiting.
  if (out.closed) turn?.end()
  else if (turn) out.once('close', () => turn.end())
  return letIn
}

/** What there is, for programs and for people. Made once: anybody may ask, and it takes a while. */
function addReference(app: Hono, { version }: Doors): void {
  let api: object | undefined
  let page: string | undefined
  app.get('/openapi.json', (c) => c.json((api ??= openApi(version))))
  app.get('/docs', (c) => {
    c.header(
      'content-security-policy',
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    )
    return c.html((page ??= referencePage(version)))
  })
}

/** For those who look on: numbers, and events as they happen. */
function addWatching(app: Hono, doors: Doors, requests: () => number): void {
  app.get('/metrics', async (c) => {
    const bearer = await bearerOf(c, doors, askedWith(c), '/metrics')
    if (bearer.scope) throw wholeOnly('/metrics')
    const { version, store, hub } = doors
    const now = { version, listeners: hub.listeners, requests: requests() }
    bearer.uses?.turn.spend(METRICS_MS)
    const text = await metricsText(store, now)
    bearer.uses?.turn.end()
    return c.body(text, 200, { 'content-type': EXPOSITION_TYPE })
  })
  app.get('/v1/events', async (c) => {
    const secret = askedWith(c)
    const bearer = await bearerOf(c, doors, secret, '/v1/events')
    bearer.uses?.turn.end()
    doors.stopping.throwIfAborted()
    // A stream is a body, and a HEAD has none.
    if (c.req.method === 'HEAD') return c.body(null, 200, { 'content-type': 'text/event-stream' })
    const out = outgoingOf(c)
    if (out.destroyed) return RESPONSE_ALREADY_SENT
    new UnderWay(c, bearer).streaming()
    // At once: what a stuck listener has not taken yet is not for it any more.
    out.once(
      'close',
      doors.access.watch(secret, () => out.destroy()),
    )
    const last = c.req.header('last-event-id') ?? c.req.query('after')
    // Written there without a stream of ours in between.
    const caller = callerFor(bearer, undefined)
    const see = (events: Event[]) => eventsSeen(doors.store, events, caller)
    const read: ReadEvents = async (after, limit) => {
      const turn = await bearer.budget?.turn('past events')
      try {
        const events = await doors.store.events(after, limit)
        turn?.spend(events.length * EVENT_MS)
        return events
      } finally {
        turn?.end()
      }
    }
    await doors.hub.stream(last, out, { read, ...(isScoped(caller) && { see }) })
    return RESPONSE_ALREADY_SENT
  })
}

function operationOf(c: Context): Operation {
  const operation = operationNamed.get(c.req.param('name') ?? '')
  if (!operation) throw noRoute(c)
  // Not only GET: a HEAD takes the route of a GET.
  if (c.req.method !== 'POST' && operation.effect === 'write') {
    throw new Refusal('invalid', `${operation.name} changes something`, {
      next: `Use POST /v1/${operation.name} with a JSON object.`,
    })
  }
  return operation
}

function inputOf(
  c: Context,
  operation: Operation,
  { uses }: Bearer,
): Promise<Record<string, unknown>> {
  if (c.req.method === 'POST') return readJson(c.req.raw, bodyMaxOf(operation), uses?.turn)
  // Everything is text there; the check reads it as what its field takes.
  return Promise.resolve(c.req.query())
}

function answerRefusal(c: Context, { store }: Doors, error: unknown): Response {
  const refusal = error instanceof Refusal ? error : broken(error)
  noteRefusal(store, refusal, c.req.path, c.get('agent') as string | undefined)
  const after = refusal.details['retry_after_seconds']
  if (typeof after === 'number') c.header('retry-after', String(after))
  const status = REFUSALS[refusal.code].http as ContentfulStatusCode
  return c.json(refusal.inWords(byRequest), status)
}

const byRequest: Say = (asked) => `POST /v1/${byName(asked)}`

function noRoute(c: Context): Refusal {
  return new Refusal('not_found', `There is no ${c.req.method} ${c.req.path}`, {
    next: 'GET /docs lists what there is.',
  })
}
