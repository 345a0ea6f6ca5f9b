import { bearer } from '../../reach/header_text.ts'
import { embedded, type Provider } from './provider.ts'

const TIMEOUT_MS = 30_000
const TEXTS_MAX = 64
const SAID_MAX = 200

export interface EndpointOptions {
  /** Up to `/v1`. */
  url: string
  model: string
  key: string | undefined
  dimensions: number | undefined
  alike: number
}

/** Asks an OpenAI-compatible endpoint; throws with what it said when that was no answer. */
async function postJson(
  { url, key }: Pick<EndpointOptions, 'url' | 'key'>,
  path: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<unknown> {
  const response = await fetch(`${url.replace(/\/+$/, '')}/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key !== undefined && { authorization: bearer(key) }),
    },
    body: JSON.stringify(body),
    redirect: 'error',
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ...(signal ? [signal] : [])]),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, SAID_MAX)}`)
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${path}: not JSON: ${text.slice(0, SAID_MAX)}`)
  }
}

/** Any server that speaks OpenAI's embeddings: Ollama, llama.cpp, vLLM, OpenAI itself. */
export class EndpointProvider implements Provider {
  readonly name: string
  readonly alike: number
  readonly floor = 0
  private readonly closing = new AbortController()

  private constructor(
    private readonly options: EndpointOptions,
    readonly dimensions: number,
  ) {
    this.name = `openai:${options.url}#${options.model}@${dimensions}`
    this.alike = options.alike
  }

  /** Asks for one vector first, unless it was configured how long they are. */
  static async open(options: EndpointOptions): Promise<EndpointProvider> {
    const { dimensions } = options
    if (dimensions !== undefined) return new EndpointProvider(options, dimensions)
    const [vector] = await askFor(options, ['How long is a vector?'])
    return new EndpointProvider(options, vector!.length)
  }

  async embed(texts: string[]): Promise<Float32Array[]> {
    const vectors: Float32Array[] = []
    for (let from = 0; from < texts.length; from += TEXTS_MAX) {
      const part = texts.slice(from, from + TEXTS_MAX).map(embedded)
      vectors.push(...(await askFor(this.options, part, this.closing.signal)))
    }
    const wrong = vectors.find((each) => each.length !== this.dimensions)
    if (wrong) throw new Error(`embeddings: ${wrong.length} dimensions, not ${this.dimensions}`)
    return vectors
  }

  close(): Promise<void> {
    this.closing.abort()
    return Promise.resolve()
  }
}

async function askFor(
  options: EndpointOptions,
  input: string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const { model, dimensions } = options
  const body = { model, input, ...(dimensions !== undefined && { dimensions }) }
  const said = (await postJson(options, 'embeddings', body, signal)) as { data?: unknown } | null
  const data = Array.isArray(said?.data) ? (said.data as unknown[]) : []
  const vectors: Float32Array[] = []
  for (const [i, each] of data.entries()) {
    const { embedding, index = i } = (each ?? {}) as { embedding?: unknown; index?: number }
    const isVector = Array.isArray(embedding) && embedding.every((part) => Number.isFinite(part))
    if (isVector && embedding.length > 0) vectors[index] = Float32Array.from(embedding as number[])
  }
  if (vectors.length !== input.length || vectors.includes(undefined as never)) {
    throw new Error(`embeddings: ${data.length} answers to ${input.length} texts`)
  }
  return vectors
}
