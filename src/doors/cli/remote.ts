import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Caller } from '../../core/caller.ts'
import { refuseStopped, Unanswered, type Watched, watchSilence } from '../../reach/silence.ts'
import { answerOf, letterOf } from '../../reach/wire.ts'

/** Calls an operation over HTTP. Throws `Unanswered` when there is no answer at all. */
export async function askDaemon(
  asked: Watched,
  caller: Caller,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  refuseStopped(asked.daemon)
  const { body, headers } = letterOf(asked.daemon, asked.input, caller)
  const { status, text } = await post(asked, body, { headers, ...(signal && { signal }) })
  return answerOf(status, text)
}

function post(
  asked: Watched,
  body: string,
  how: { headers: Record<string, string>; signal?: AbortSignal },
): Promise<{ status: number; text: string }> {
  // Loaded here: a command that finds no daemon does without.
  const http = process.getBuiltinModule('node:http')
  const { daemon, operation } = asked
  const answer = new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request: ClientRequest = http.request(
      new URL(`/v1/${operation}`, daemon.url),
      { ...how, method: 'POST' },
      (response) => {
        void collect(response).then(
          (text) => resolve({ status: response.statusCode ?? 0, text }),
          reject,
        )
      },
    )
    const heard = watchSilence(asked, (why) => request.destroy(why))
    request.on('error', (error) => reject(unanswered(error)))
    request.on('close', heard)
    request.end(body)
  })
  return answer
}

async function collect(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer)
  } catch (error) {
    throw unanswered(error as Error)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const unanswered = (error: Error) =>
  error instanceof Unanswered ? error : new Unanswered(error.message)
