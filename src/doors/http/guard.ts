import type { ServerResponse } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { Refusal } from '../../core/refusal.ts'
import type { PaceTurn } from '../../operations/pace.ts'
import { BODY_MAX } from '../body_bound.ts'
import { parseJson } from './json_shape.ts'

/** Hosts that this server answers to: its own loopback names, with its own port. */
export function loopbackHosts(port: number): Set<string> {
  const names = ['127.0.0.1', 'localhost', '[::1]']
  // Clients leave the port out where it is the one that everybody expects.
  return new Set([...names.map((name) => `${name}:${port}`), ...(port === 80 ? names : [])])
}

/** Every answer has these; a page that needs more says what it needs. */
export const SAFE_HEADERS = [
  ['x-content-type-options', 'nosniff'],
  ['cache-control', 'no-store'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['x-frame-options', 'DENY'],
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
] as const

/**
 * Exact checks on every route, before anything else is looked at. A page of another site can make a
 * browser send requests here; it cannot make it lie about Host and Origin.
 */
export function guard(hosts: () => Set<string>): MiddlewareHandler {
  return (c, next) => {
    // On what Node sends, where an answer's own stand above them: to add them to every answer
    // afterwards would cost more than the rest of this door.
    for (const [name, value] of SAFE_HEADERS) outgoingOf(c).setHeader(name, value)
    const host = c.req.header('host')
    if (host === undefined || !hosts().has(host)) {
      throw new Refusal(
        'forbidden',
        `This server does not answer for the host ${host ?? '(none)'}`,
        { next: 'Use the address that leasehold printed.' },
      )
    }
    const origin = c.req.header('origin')
    if (origin !== undefined && !isOwn(origin, hosts())) {
      throw new Refusal('forbidden', `Requests from ${origin} are refused`, {
        next: 'Call from a program, or from the page that this server serves.',
      })
    }
    return next()
  }
}

/** What Node answers with. */
export function outgoingOf(c: Context): ServerResponse {
  return (c.env as { outgoing: ServerResponse }).outgoing
}

function isOwn(origin: string, hosts: Set<string>): boolean {
  return origin.startsWith('http://') && hosts.has(origin.slice('http://'.length))
}

const DISCARD_MAX = 16 * BODY_MAX
const DISCARD_MS = 500

/**
 * Reads a JSON object of at most `max` bytes, and nothing else: forms and plain text come from
 * pages we do not know.
 */
export async function readJson(
  request: Request,
  max = BODY_MAX,
  turn?: PaceTurn,
): Promise<Record<string, unknown>> {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new Refusal('invalid', 'The body must be application/json', {
      next: 'Set content-type: application/json.',
    })
  }
  const value = await readValue(request, max, turn)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>
  }
  throw new Refusal('invalid', 'The body must be a JSON object')
}

/** Whatever JSON a body of at most `max` bytes has; reading it counts as work of its sender. */
export async function readValue(
  request: Request,
  max: number,
  turn: PaceTurn | undefined,
): Promise<unknown> {
  const text = await readBounded(request, max)
  const parse = () => (text === '' ? {} : parseJson(text))
  return turn ? turn.timed(parse) : parse()
}

async function readBounded(request: Request, max: number): Promise<string> {
  const stated = request.headers.get('content-length')
  try {
    // Node holds a body to the length it states; only one without a length has to be counted.
    if (stated !== null && Number(stated) <= max) return await request.text()
    const reader = request.body?.getReader()
    return reader ? await readCounted(reader, Number(stated ?? 0), max) : ''
  } catch (error) {
    throw error instanceof Refusal ? error : cutOff()
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

async function readCounted(reader: Reader, stated: number, max: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  while (stated <= max && size <= max) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks).toString('utf8')
    size += value.length
    chunks.push(value)
  }
  await discard(reader)
  throw tooLarge(max)
}

/** Takes what still comes for a moment: closing while it is sent would take the answer along. */
async function discard(reader: Reader): Promise<void> {
  const late = setTimeout(() => void reader.cancel().catch(() => undefined), DISCARD_MS)
  for (let size = 0; size < DISCARD_MAX;) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.length
  }
  clearTimeout(late)
}

function cutOff(): Refusal {
  return new Refusal('invalid', 'The body did not arrive whole', {
    next: 'Nothing was done. Send it again.',
  })
}

function tooLarge(max: number): Refusal {
  return new Refusal('too_large', `A body may have at most ${max} bytes`, {
    next: 'Send less, or keep large content in a file and name it.',
  })
}
