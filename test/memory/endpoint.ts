import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

const DIMENSIONS = 64

/** A text as the sum of its words, each in a direction of its own: alike if they share words. */
export function vectorOf(text: string): number[] {
  const vector = Array.from({ length: DIMENSIONS }, () => 0)
  for (const word of text.toLowerCase().match(/\w+/g) ?? ['']) {
    let seed = 7
    for (const letter of word) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) >>> 0
    for (let i = 0; i < DIMENSIONS; i += 1) {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      vector[i]! += seed / 2 ** 31 - 1
    }
  }
  return vector
}

/** A server that speaks as OpenAI's does: embeddings from words. */
export class Endpoint {
  /** Every text that was asked for. */
  readonly texts: string[] = []
  /** What the headers of the last request were. */
  headers: IncomingMessage['headers'] = {}
  /** Refuses texts that this is true of. */
  fails: (text: string) => boolean = () => false

  private constructor(readonly url: string) {}

  static async start(): Promise<Endpoint> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        endpoint.headers = request.headers
        const asked = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, never>
        const [status, body] = endpoint.answer(request.url ?? '', asked)
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const endpoint = new Endpoint(`http://127.0.0.1:${port}/v1`)
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return endpoint
  }

  private answer(url: string, asked: Record<string, unknown>): [number, unknown] {
    if (url !== '/v1/embeddings') return [404, { error: 'no such path' }]
    const input = asked['input'] as string[]
    if (input.some((text) => this.fails(text))) return [500, { error: 'cannot read this' }]
    this.texts.push(...input)
    const data = input.map((text, index) => ({ index, embedding: vectorOf(text) }))
    return [200, { data: data.toReversed() }]
  }

  /** A part of config.json that makes a server use this one. */
  config(more: object = {}): object {
    const embeddings = { provider: 'openai', url: this.url, model: 'words', ...more }
    return { memory: { embeddings } }
  }
}
