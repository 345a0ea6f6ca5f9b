import { Worker } from 'node:worker_threads'
import type { EmbedAnswer, EmbedAsk } from './embedder.ts'
import { embedded, type Provider } from './provider.ts'

/** Texts per message: an urgent one waits for at most so many, and each takes memory at once. */
const TEXTS_MAX = 2
/** What the thread may keep before it tidies up: left alone, it takes 100 MB more. */
const HEAP_MB = 48
/** The model takes about 250 MB: a thread that was not asked for so long is let go. */
const IDLE_MS = 120_000

interface Pending {
  texts: string[]
  urgent: boolean
  resolve: (vectors: Float32Array[]) => void
  reject: (error: Error) => void
}

/**
 * The model inside a package (MiniLM-L6, English): no network, no key. It
 * runs in a worker thread that is started when first needed.
 */
export class LocalProvider implements Provider {
  readonly name = 'local:minilm-l6-v2@0.1'
  readonly dimensions = 384
  /** Measured on queries with and without an answer (test/memory/held). */
  readonly floor = 0.28
  private readonly waiting: Pending[] = []
  private thread: Worker | undefined
  private current: (Pending & { id: number }) | undefined
  private asked = 0
  private idle: NodeJS.Timeout | undefined
  private isClosed = false

  /** `alike` was chosen on pairs labelled by hand (test/memory/held), apart from those reported. */
  constructor(
    readonly alike = 0.79,
    private readonly file = new URL('embedder.mjs', import.meta.url),
  ) {}

  async embed(texts: string[], urgent = false): Promise<Float32Array[]> {
    const parts: Promise<Float32Array[]>[] = []
    for (let from = 0; from < texts.length; from += TEXTS_MAX) {
      parts.push(this.enqueue(texts.slice(from, from + TEXTS_MAX).map(embedded), urgent))
    }
    return (await Promise.all(parts)).flat()
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.rest()
  }

  /** Lets the thread go; the next text starts another. */
  private async rest(): Promise<void> {
    clearTimeout(this.idle)
    const { thread } = this
    this.thread = undefined
    await thread?.terminate()
    this.fail(new Error('the model was closed'))
  }

  private enqueue(texts: string[], urgent: boolean): Promise<Float32Array[]> {
    if (this.isClosed) return Promise.reject(new Error('the model was closed'))
    return new Promise((resolve, reject) => {
      const pending = { texts, urgent, resolve, reject }
      const behind = urgent ? this.waiting.findIndex((each) => !each.urgent) : -1
      if (behind === -1) this.waiting.push(pending)
      else this.waiting.splice(behind, 0, pending)
      this.next()
    })
  }

  private next(): void {
    if (this.current) return
    const pending = this.waiting.shift()
    clearTimeout(this.idle)
    if (!pending) {
      // Nobody waits: the thread keeps no process alive.
      this.thread?.unref()
      this.idle = setTimeout(() => void this.rest(), IDLE_MS).unref()
      return
    }
    this.thread ??= this.start()
    this.thread.ref()
    this.asked += 1
    this.current = { ...pending, id: this.asked }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- no window, a thread
    this.thread.postMessage({ id: this.asked, texts: pending.texts } satisfies EmbedAsk)
  }

  private start(): Worker {
    const thread = new Worker(this.file, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } })
    thread.on('message', (answer: EmbedAnswer) => {
      const { current } = this
      if (current?.id !== answer.id) return
      this.current = undefined
      if ('error' in answer) current.reject(new Error(answer.error))
      else current.resolve(answer.vectors)
      this.next()
    })
    thread.on('error', (error) => {
      if (this.thread !== thread) return
      this.thread = undefined
      const isMissing = error.message.startsWith('Cannot find package')
      this.fail(isMissing ? new Error('its packages were left out when npm installed us') : error)
    })
    return thread
  }

  private fail(error: Error): void {
    const failed = [this.current, ...this.waiting.splice(0)]
    this.current = undefined
    for (const each of failed) each?.reject(error)
  }
}
