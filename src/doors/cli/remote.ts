import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Caller } from '../../core/caller.ts'
import type { Daemon } from '../../stores/server_file.ts'
import { answerOf, letterOf, Unanswered } from '../../stores/wire.ts'

/** Calls an operation over HTTP. Throws `Unanswered` when there is no answer at all. */
export async function askDaemon(
  daemon: Daemon,
  operation: string,
  input: Record<string, unknown>,
  caller: Caller,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { body, headers } = letterOf(daemon, input, caller)
  const { status, text } = await post(daemon, `/v1/${operation}`, body, signal, headers)
  return answerOf(status, text)
}

function post(
  daemon: Daemon,
  path: string,
  body: string,
  signal: AbortSignal | undefined,
  headers: Record<string, string>,
): Promise<{ status: number; text: string }> {
  // Loaded here: a command that finds no daemon does without.
  const http = process.getBuiltinModule('node:http')
  return new Promise((resolve, reject) => {
    const request: ClientRequest = http.request(
      new URL(path, daemon.url),
      { method: 'POST', headers, ...(signal && { signal }) },
      (response) => {
        void collect(response).then(
          (text) => resolve({ status: response.statusCode ?? 0, text }),
          reject,
        )
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
