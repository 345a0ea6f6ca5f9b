import type { Caller } from '../core/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { bearer, headerJson } from './header_text.ts'
import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import { type ReachAsk, Unanswered } from './ask.ts'
import type { Daemon } from './server_file.ts'
import { httpFor, patienceFor, refuseStopped, stakeIn, watchSilence } from './silence.ts'

interface Sent {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  signal?: AbortSignal | undefined
  /** Connections that are kept open; without it, one of Node's own; false: one for this alone. */
  connections?: Agent | false | undefined
}

/**
 * Calls an operation of a daemon by Node's own client: for what may wait, be given up, or be asked
 * often over one connection. Throws `Unanswered` when there is no answer at all.
 */
export async function askHttp(
  daemon: Daemon,
  asked: ReachAsk,
  connections?: Agent,
): Promise<unknown> {
  const { operation, input, caller, signal } = asked
  const { body, headers } = letterOf(daemon, input, caller)
  const path = `/v1/${operation.name}`
  const request = requestTo(daemon, { method: 'POST', path, headers, signal, connections })
  let silence: Unanswered | undefined
  const heard = watchSilence(daemon, asked, (why) => {
    silence = why
    request.destroy(why)
  })
  try {
    const response = await responseTo(request, body)
    return answerOf(response.statusCode ?? 0, await textOf(response))
  } catch (error) {
    throw silence ?? error
  } finally {
    heard()
  }
}

/** For programs that are gone in a moment: they do not ask whether a silent daemon is at work. */
export async function askBriefly(
  daemon: Daemon,
  { operation, input, caller, ttl_ms = stakeIn(input) }: ReachAsk,
): Promise<unknown> {
  const { body, headers } = letterOf(daemon, input, caller)
  const signal = AbortSignal.timeout(patienceFor(ttl_ms))
  const path = `/v1/${operation.name}`
  try {
    // One that was kept open may have been closed at the other end meanwhile.
    const sent = { method: 'POST', path, headers, signal, connections: false } as const
    const request = requestTo(daemon, sent)
    const response = await responseTo(request, body)
    return answerOf(response.statusCode ?? 0, await textOf(response))
  } catch (error) {
    const isLate = error instanceof Unanswered && signal.aborted
    throw isLate ? new Unanswered('no answer in time') : error
  }
}

/** Throws `Unanswered` when the daemon is stopped; it is sent by `responseTo`. */
export function requestTo(daemon: Daemon, sent: Sent): ClientRequest {
  refuseStopped(daemon)
  const { method, path, headers, signal, connections } = sent
  // Loaded here: a command that finds no daemon does without.
  return httpFor(daemon).request(new URL(path, daemon.url), {
    method,
    headers,
    ...(signal && { signal }),
    ...(connections !== undefined && { agent: connections }),
  })
}

export function responseTo(request: ClientRequest, body = ''): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve)
    request.on('error', (error) => reject(new Unanswered(error.message)))
    request.end(body)
  })
}

export async function textOf(response: IncomingMessage): Promise<string> {
  try {
    let text = ''
    for await (const part of response.setEncoding('utf8')) text += String(part)
    return text
  } catch (error) {
    throw new Unanswered((error as Error).message)
  }
}

/** The body and the headers that an ask consists of, whichever way it is sent. */
function letterOf(
  daemon: Daemon,
  input: Record<string, unknown>,
  { agent, given, process, under, admin }: Caller,
): { body: string; headers: Record<string, string> } {
  // Who a token stands for is for the server to say, unless a name was given.
  const body = JSON.stringify(daemon.isOurs || given ? { ...input, agent } : input)
  const headers = {
    authorization: bearer(daemon.secret),
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...(daemon.isOurs && { 'leasehold-caller': headerJson({ given, process, under, admin }) }),
  }
  return { body, headers }
}

/** What a daemon answered, or the refusal that it was; `Unanswered` if it is not from us. */
export function answerOf(status: number, text: string): unknown {
  const reply = parse(text)
  if (status === 200) return reply
  const refusal = Refusal.from(reply, status)
  // It has done nothing, and is about to be gone: the same as if nobody had answered.
  if (refusal.details['stopping'] === true) throw new Unanswered(refusal.message)
  throw refusal
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Unanswered('the server did not answer with JSON')
  }
}
