import { connect } from 'node:net'
import type { Caller } from '../../core/caller.ts'
import { answerOf, ascii, Unanswered } from '../../doors/cli/remote.ts'
import type { Daemon } from '../../stores/server_file.ts'

/**
 * Calls an operation of our own daemon on a bare socket, as HTTP/1.0: one request, one answer, the
 * end. Loading Node's own client would take 7 ms of the start of every run.
 * Throws `Unanswered` when there is no answer at all, or none within `patience_ms`.
 */
export async function askBare(
  daemon: Daemon,
  operation: string,
  input: Record<string, unknown>,
  caller: Caller,
  patience_ms: number,
): Promise<unknown> {
  const { agent, given, process, under, admin } = caller
  const body = JSON.stringify({ ...input, agent })
  const { hostname, port, host } = new URL(daemon.url)
  const head = [
    `POST /v1/${operation} HTTP/1.0`,
    `host: ${host}`,
    `authorization: Bearer ${daemon.secret}`,
    `leasehold-caller: ${ascii({ given, process, under, admin })}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  const request = `${head.join('\r\n')}\r\n\r\n${body}`
  const place = { host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port) }
  return answerIn(await exchange(place, request, patience_ms))
}

function exchange(
  place: { host: string; port: number },
  request: string,
  patience_ms: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(place, () => socket.write(request))
    const late = setTimeout(() => socket.destroy(new Error('no answer in time')), patience_ms)
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', (error) => reject(new Unanswered(error.message)))
    socket.on('close', () => {
      clearTimeout(late)
      resolve(Buffer.concat(chunks).toString('utf8'))
    })
  })
}

/** An answer that was cut off is none. */
function answerIn(text: string): unknown {
  const end = text.indexOf('\r\n\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1])
  return answerOf(status, end === -1 ? '' : text.slice(end + 4))
}
