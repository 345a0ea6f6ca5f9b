import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Caller } from '../../core/caller.ts'
import { type Details, Refusal, type RefusalCode } from '../../core/refusal.ts'
import { readSecret, readServer } from '../../daemon/files.ts'

/** A daemon that can be asked: where it is, and with what secret. */
export interface Daemon {
  url: string
  secret: string
  /** False with `LEASEHOLD_TOKEN`: then that token is all we are, and the store is not ours. */
  isOurs: boolean
}

/** Nobody answered: there is no daemon, or it went away in the middle of the call. */
export class Unanswered extends Error {}

/**
 * The daemon that this caller uses, if one runs. With `LEASEHOLD_TOKEN` set that token is used
 * alone, never the admin's secret or the store.
 */
export function findDaemon(env: NodeJS.ProcessEnv, folder: string): Daemon | undefined {
  const server = readServer(folder)
  const token = env['LEASEHOLD_TOKEN']
  if (token) {
    const url = env['LEASEHOLD_URL'] ?? server?.url
    if (url) return { url, secret: token, isOurs: false }
    throw new Refusal('unavailable', 'LEASEHOLD_TOKEN is set, but no server is known', {
      next: 'Set LEASEHOLD_URL, or start one: leasehold up',
    })
  }
  const secret = server && readSecret(folder)
  return secret === undefined ? undefined : { url: server!.url, secret, isOurs: true }
}

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
  const { status, text } = await post(daemon, `/v1/${operation}`, JSON.stringify(named), signal, {
    'leasehold-caller': daemon.isOurs ? JSON.stringify({ given, process, under, admin }) : '{}',
  })
  const reply = parse(text)
  if (status === 200) return reply
  throw refusalIn(reply, status)
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
  signal: AbortSignal | undefined,
  more: Record<string, string>,
): Promise<{ status: number; text: string }> {
  // Loaded here: a command that finds no daemon does without.
  const http = globalThis.process.getBuiltinModule('node:http')
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${daemon.secret}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...more,
    }
    const request: ClientRequest = http.request(
      new URL(path, daemon.url),
      { method: 'POST', headers, ...(signal && { signal }) },
      (response) => {
        void collect(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject)
      },
    )
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
