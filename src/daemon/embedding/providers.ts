import { bearer } from '../../reach/header_text.ts'
import type { Config } from '../config/config.ts'
import { LocalProvider } from './local.ts'
import { embedded, type Provider } from './provider.ts'

/** Two notes are duplicates from this cosine on, unless a provider or the configuration differs. */
const ALIKE = 0.85

/** The provider that is configured; undefined when notes are not to be embedded. */
export async function openProvider(
  { memory }: Pick<Config, 'memory'>,
  env: NodeJS.ProcessEnv,
): Promise<Provider | undefined> {
  const { provider, url, model, api_key_env, duplicates_at } = memory.embeddings
  if (provider === 'off') return undefined
  if (provider === 'local') return new LocalProvider(duplicates_at)
  const key = keyIn(env, api_key_env)
  const alike = duplicates_at ?? ALIKE
  return EndpointProvider.open({ url: url!, model: model!, key, alike })
}

function keyIn(env: NodeJS.ProcessEnv, name: string | undefined): string | undefined {
  if (name === undefined) return undefined
  const key = env[name]
  if (!key) throw new Error(`the environment variable ${name} has no key`)
  return key
}

const TIMEOUT_MS = 30_000
const TEXTS_MAX = 64
const SAID_MAX = 200

interface EndpointOptions {
  /** Up to `/v1`. */
  url: string
  model: string
  key: string | undefined
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
class EndpointProvider implements Provider {
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

  /** Asks for one vector first, to know how long they are. */
  static async open(options: EndpointOptions): Promise<EndpointProvider> {
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
  const body = { model: options.model, input }
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
