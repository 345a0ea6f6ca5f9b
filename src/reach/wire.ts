import type { Caller } from '../core/caller.ts'
import { Refusal } from '../core/refusal.ts'
import { type ReachAsk, Unanswered } from './ask.ts'
import { bearer, headerJson } from './header_text.ts'
import type { Daemon } from './server_file.ts'
import { patienceFor, refuseStopped, stakeIn } from './silence.ts'

/** The body and the headers that an ask consists of, whichever way it is sent. */
export function letterOf(
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

/**
 * Calls an operation of a daemon on a bare socket, as HTTP/1.0: one request, one answer, the end.
 * Loading Node's own client would take 7 ms of the start of every run and of every hook.
 * Throws `Unanswered` when there is no answer at all, or none in time.
 */
export async function askBare(
  daemon: Daemon,
  { operation, input, caller, ttl_ms = stakeIn(input) }: ReachAsk,
): Promise<unknown> {
  refuseStopped(daemon)
  const { body, headers } = letterOf(daemon, input, caller)
  const { hostname, port, host } = new URL(daemon.url)
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}`)
  const head = [`POST /v1/${operation.name} HTTP/1.0`, ...lines].join('\r\n')
  const place = { host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port) || 80 }
  const answer = await exchange(place, `${head}\r\n\r\n${body}`, patienceFor(ttl_ms))
  const { status, text } = readAnswer(answer)
  return answerOf(status, text)
}

function exchange(
  place: { host: string; port: number },
  request: string,
  patience_ms: number,
): Promise<Buffer> {
  // Loaded here: most that can ask this way find nobody to ask.
  const { connect } = process.getBuiltinModule('node:net')
  return new Promise((resolve, reject) => {
    let answer = Buffer.alloc(0)
    const socket = connect(place, () => socket.write(request))
    const late = setTimeout(() => socket.destroy(new Error('no answer in time')), patience_ms)
    socket.on('data', (chunk) => {
      answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk])
      if (!isWhole(answer)) return
      // The server takes its time to say that this is the end, and a hook has no time to close.
      clearTimeout(late)
      resolve(answer)
      setImmediate(() => socket.destroy())
    })
    socket.on('error', (error) => reject(new Unanswered(error.message)))
    socket.on('close', () => {
      clearTimeout(late)
      resolve(answer)
    })
  })
}

/** An answer that was cut off is none: its text is not JSON. */
function readAnswer(answer: Buffer): { status: number; text: string } {
  const end = answer.indexOf('\r\n\r\n')
  const head = answer.toString('latin1', 0, Math.max(end, 0))
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1])
  return { status, text: end === -1 ? '' : answer.toString('utf8', end + 4) }
}

/** Whether all is there that the answer says it has; without a length only its end tells. */
function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(answer.toString('latin1', 0, end))?.[1]
  return length !== undefined && answer.length >= end + 4 + Number(length)
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
