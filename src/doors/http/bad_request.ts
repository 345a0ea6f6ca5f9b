import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal, REFUSALS } from '../../core/refusal.ts'
import { broken } from '../broken.ts'
import { SAFE_HEADERS } from './guard.ts'

const LINGER_MS = 500
/** How often it is looked whether this process gets on, and what counts as being stuck. */
const TICK_MS = 250
const STUCK_MS = 1_000

/** Answers a request whose address or host nobody could read: it never came as far as a route. */
export function unreadable(error: unknown): Response {
  if (error instanceof Error && error.name === 'RequestError') {
    const refusal = new Refusal('invalid', `The request cannot be read: ${error.message}`, {
      next: 'Use the address that leasehold printed.',
    })
    return answerOf(refusal)
  }
  return answerOf(broken(error))
}

const answerOf = (refusal: Refusal) =>
  Response.json(refusal, {
    status: REFUSALS[refusal.code].http,
    headers: SAFE_HEADERS.map(([name, value]): [string, string] => [name, value]),
  })

/**
 * Answers what is not HTTP, too long or too slow with a refusal, where that cannot be taken for the
 * answer to another request; then ends the connection.
 */
export function answerBadRequests(server: Server): void {
  const wasStuck = watchLoop(server)
  const latest = new WeakMap<object, { request: IncomingMessage; response: ServerResponse }>()
  server.on('request', (request, response) => latest.set(request.socket, { request, response }))
  const answered = new WeakSet<Socket>()
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // What else it sends is not read as HTTP any more.
    if (answered.has(socket)) return
    const open = latest.get(socket)
    const isAsked = open && !open.response.writableEnded
    const isMixed = isAsked && (open.request.complete || open.response.headersSent)
    if (!socket.writable || isMixed || error.code === 'ECONNRESET') socket.destroy()
    else {
      answered.add(socket)
      socket.end(answerTo(wasStuck() ? ownFault(error) : refusalOf(error)))
      linger(socket)
    }
  })
}

/** Closing at once, while it still sends, would take back the answer before it was read. */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** A request that arrived while this process was busy is late by no fault of its sender. */
function ownFault(error: NodeJS.ErrnoException): Refusal {
  if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') return refusalOf(error)
  return new Refusal('unavailable', 'The server was too busy to read the request in time', {
    next: 'Nothing was done. Send it again.',
  })
}

/** Notices when nothing is read for a while. Says whether that was so lately. */
function watchLoop(server: Server): () => boolean {
  let ticked_ms = performance.now()
  let stuck_ms = Number.NEGATIVE_INFINITY
  const look = () => {
    const now = performance.now()
    if (now - ticked_ms > TICK_MS + STUCK_MS) stuck_ms = now
    ticked_ms = now
    return now - stuck_ms < server.requestTimeout
  }
  const timer = setInterval(look, TICK_MS).unref()
  server.once('close', () => clearInterval(timer))
  return look
}

function answerTo(refusal: Refusal): string {
  const body = JSON.stringify(refusal)
  return [
    `HTTP/1.1 ${REFUSALS[refusal.code].http} ${refusal.code}`,
    'Content-Type: application/json',
    ...SAFE_HEADERS.map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

function refusalOf(error: NodeJS.ErrnoException): Refusal {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('too_large', 'The headers are too large', { next: 'Send fewer of them.' })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Refusal('invalid', 'The request took too long to arrive', {
        next: 'Nothing was done. Send it again, whole.',
      })
    default:
      return new Refusal('invalid', `This is not HTTP: ${error.message}`, {
        next: 'Speak HTTP/1.1 to this port.',
      })
  }
}
