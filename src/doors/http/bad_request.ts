import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal, REFUSALS } from '../../core/refusal.ts'
import { broken } from '../broken.ts'
import { SAFE_HEADERS } from './guard.ts'

const LINGER_MS = 500

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
      socket.end(answerTo(error))
      linger(socket)
    }
  })
}

/** Closing at once, while it still sends, would take back the answer before it was read. */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

function answerTo(error: NodeJS.ErrnoException): string {
  const refusal = refusalOf(error)
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
