import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import { type ReachAsk, Unanswered } from './ask.ts'
import type { Daemon } from './server_file.ts'
import { httpFor, refuseStopped, watchSilence } from './silence.ts'
import { answerOf, askBare, letterOf } from './wire.ts'

interface Sent {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  signal?: AbortSignal | undefined
  /** Connections that are kept open; without it, one of Node's own. */
  connections?: Agent | undefined
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

/** For programs that are gone in a moment: on a bare socket, unless that would show the secret. */
export function askBriefly(daemon: Daemon, asked: ReachAsk): Promise<unknown> {
  return daemon.url.startsWith('https:') ? askHttp(daemon, asked) : askBare(daemon, asked)
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
    ...(connections && { agent: connections }),
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
