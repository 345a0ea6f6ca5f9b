import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Caller } from '../../core/caller.ts'
import { type Details, Refusal, type RefusalCode } from '../../core/refusal.ts'
import type { Daemon } from '../../stores/server_file.ts'

/** Nobody answered: there is no daemon, or it went away in the middle of the call. */
export class Unanswered extends Error {}

/**
 * A daemon that is paused says nothing for ever; one that stops a command first takes its grace.
 * The store itself may be asked after that: the request id sees to it that nothing is done twice.
 */
const SILENCE_MS = 20_000

/** Calls an operation over HTTP. Throws `Unanswered` when there is no answer at all. */
export async function askDaemon(
  daemon: Daemon,
  operation: string,
  input: Record<string, unknown>,
  caller: Caller,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { agent, given, process, under, admin } = caller
  // Who a token stands for is for the server to say, unless a name was given.
  const named = daemon.isOurs || given ? { ...input, agent } : input
  const about = daemon.isOurs && { 'leasehold-caller': ascii({ given, process, under, admin }) }
  const body = JSON.stringify(named)
  const wait_ms = Number(input['wait_seconds'] ?? 0) * 1000
  const timeout = SILENCE_MS + wait_ms
  const how = { headers: about || {}, timeout, ...(signal && { signal }) }
  const { status, text } = await post(daemon, `/v1/${operation}`, body, how)
  return answerOf(status, text)
}

/** What a daemon answered, or the refusal that it was; `Unanswered` if it is not from us. */
export function answerOf(status: number, text: string): unknown {
  const reply = parse(text)
  if (status === 200) return reply
  const refusal = refusalIn(reply, status)
  // It has done nothing, and is about to be gone: the same as if nobody had answered.
  if (refusal.details['stopping'] === true) throw new Unanswered(refusal.message)
  throw refusal
}

/** JSON that may stand in a header: a lock's name is in any script. */
export function ascii(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[^ -~]/g, (each) => {
    return `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

function refusalIn(reply: unknown, status: number): Refusal {
  const { error } = reply as {
    error?: { code: RefusalCode; message: string; next: string; details: Details }
  }
  if (!error) return new Refusal('unavailable', `The server answered ${status}`)
  return new Refusal(error.code, error.message, { next: error.next, details: error.details })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Unanswered('the server did not answer with JSON')
  }
}

function post(
  daemon: Daemon,
  path: string,
  body: string,
  how: { headers: Record<string, string>; timeout: number; signal?: AbortSignal },
): Promise<{ status: number; text: string }> {
  // Loaded here: a command that finds no daemon does without.
  const http = globalThis.process.getBuiltinModule('node:http')
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${daemon.secret}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...how.headers,
    }
    const request: ClientRequest = http.request(
      new URL(path, daemon.url),
      { ...how, method: 'POST', headers },
      (response) => {
        void collect(response).then(
          (text) => resolve({ status: response.statusCode ?? 0, text }),
          reject,
        )
      },
    )
    const silent = `no answer for ${how.timeout / 1000} s`
    request.on('timeout', () => request.destroy(new Error(silent)))
    request.on('error', (error) => reject(new Unanswered(error.message)))
    request.end(body)
  })
}

async function collect(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer)
  } catch (error) {
    throw new Unanswered((error as Error).message)
  }
  return Buffer.concat(chunks).toString('utf8')
}
