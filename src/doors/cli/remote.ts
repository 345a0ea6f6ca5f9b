import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Caller } from '../../core/caller.ts'
import type { Daemon } from '../../stores/server_file.ts'
import { answerOf, letterOf, Unanswered } from '../../stores/wire.ts'

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
  const { body, headers } = letterOf(daemon, input, caller)
  const wait_ms = Number(input['wait_seconds'] ?? 0) * 1000
  const how = { headers, timeout: SILENCE_MS + wait_ms, ...(signal && { signal }) }
  const { status, text } = await post(daemon, `/v1/${operation}`, body, how)
  return answerOf(status, text)
}

function post(
  daemon: Daemon,
  path: string,
  body: string,
  how: { headers: Record<string, string>; timeout: number; signal?: AbortSignal },
): Promise<{ status: number; text: string }> {
  // Loaded here: a command that finds no daemon does without.
  const http = process.getBuiltinModule('node:http')
  return new Promise((resolve, reject) => {
    const request: ClientRequest = http.request(
      new URL(path, daemon.url),
      { ...how, method: 'POST' },
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
