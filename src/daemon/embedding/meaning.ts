import type { Hit } from '../../core/memory/search.ts'
import type { Event } from '../../core/event.ts'
import { keyOf } from '../../core/rows.ts'
import type { Finder, Meaning, Meant, VectorRow } from '../../stores/port.ts'
import type { Store } from '../../stores/writer/store.ts'
import { NOT_EMBEDDED } from '../../operations/search_find.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import { readConfig } from '../config/config.ts'
import type { Provider } from './provider.ts'
import { openProvider } from './providers.ts'
import { fromBytes, Nearest, pack, type Packed } from './vectors.ts'

/** Notes read at once, and vectors put in before others get their turn. */
const PAGE = 256
const TURN = 16
/** How long a search waits for a model that others keep busy, or an index that is being built. */
const PATIENCE_MS = 5_000
/** Without a server all are read first, so many in about as long as loading the model takes. */
const NOTES_MAX = 20_000
/** What is less alike than this is no answer. */
const LEAST = 0.15

/** The id of a note, from that of one of its versions. */
const memoryOf = (version_id: string) => version_id.slice(0, version_id.lastIndexOf('\n'))

/** Vectors in memory, kept in step with the store by its events, and the model that made them. */
export class IndexedMeaning implements Meaning {
  private readonly finder: Finder
  private index = new Nearest()
  private readonly changed = new Set<string>()
  private loading: Promise<void> | undefined
  private isLoaded = false
  private settling: Promise<void> | undefined
  private readonly forget: () => void

  constructor(
    store: Store,
    readonly model: Provider,
  ) {
    this.finder = store.finder!
    this.forget = store.onCommit(
      (events) => this.hear(events),
      () => this.drop(),
    )
  }

  get provider(): string {
    return this.model.name
  }

  get size(): number {
    return this.index.size
  }

  stop(): void {
    this.forget()
  }

  async search(
    query: string,
    scopes: string[] | undefined,
    limit: number,
  ): Promise<Meant | string> {
    let vector: Packed
    try {
      const asked = this.model.embed([query], true)
      const [embedded] = await Promise.all([soon(asked), soon(this.ready())])
      if (!embedded) return `${this.provider} is busy with other texts`
      vector = pack(embedded[0]!)
    } catch (error) {
      return `${this.provider}: ${(error as Error).message}`
    }
    if (!this.isLoaded) return `the index is being built`
    return { hits: await this.near(vector, scopes, limit, LEAST), floor: this.model.floor }
  }

  /** Notes near a vector, each once, the best first. */
  near(vector: Packed, scopes: string[] | undefined, limit: number, least: number): Promise<Hit[]> {
    return this.index.near(vector, limit, { scopes, least })
  }

  /** Until all that was embedded is in the index. */
  async ready(): Promise<void> {
    this.loading ??= this.load()
    await this.loading
    while (this.settling) await this.settling
  }

  private async load(): Promise<void> {
    try {
      for (let after = ''; ;) {
        const rows = await this.finder.vectors(this.provider, after, PAGE)
        await this.take(rows)
        const last = rows.at(-1)
        if (!last) break
        after = memoryOf(last.id)
      }
      this.isLoaded = true
    } catch (error) {
      this.loading = undefined
      throw error
    }
    this.settle()
  }

  private async take(rows: VectorRow[]): Promise<void> {
    for (const [i, { id, scope, bytes }] of rows.entries()) {
      if (!bytes || bytes.length !== this.model.dimensions + 4) continue
      this.index.add(memoryOf(id), scope, fromBytes(bytes))
      if (i % TURN === TURN - 1) await new Promise((resolve) => void setImmediate(resolve))
    }
  }

  private hear(events: Event[]): void {
    for (const { type, data } of events) {
      const isOurs = type === 'memory.embedded' && data['provider'] === this.provider
      for (const id of isOurs ? data['ids'] : []) this.changed.add(id)
      const gone = type === 'memory.pruned' ? data['items'] : []
      for (const { scope, key } of gone) this.changed.add(keyOf(scope, key))
    }
    if (this.isLoaded) this.settle()
  }

  private settle(): void {
    if (this.settling || this.changed.size === 0) return
    this.settling = this.bringUpToDate()
      // A store in trouble: what changed stays marked, and the next event tries again.
      .catch(() => undefined)
      .finally(() => (this.settling = undefined))
  }

  private async bringUpToDate(): Promise<void> {
    while (this.changed.size > 0) {
      const ids = [...this.changed].slice(0, PAGE)
      const rows = await this.finder.vectorsOf(this.provider, ids)
      for (const id of ids) {
        this.changed.delete(id)
        this.index.remove(id)
      }
      await this.take(rows)
    }
  }

  /** The store was put back to an earlier state: nothing that is known holds. */
  private drop(): void {
    this.index = new Nearest()
    this.changed.clear()
    this.isLoaded = false
    this.loading = undefined
  }
}

/** What comes of `work` while a search waits for it; undefined if nothing does. It goes on. */
async function soon<T>(work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), PATIENCE_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/**
 * Searches by meaning without a server: the model is loaded for this one question (about half a
 * second), and every vector is compared. Where that is not affordable, it says so.
 */
export class DirectMeaning implements Meaning {
  readonly provider = 'loaded when asked'

  constructor(
    private readonly store: Store,
    private readonly place: Place,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  async search(
    query: string,
    scopes: string[] | undefined,
    limit: number,
  ): Promise<Meant | string> {
    const finder = this.store.finder!
    const embedding = await this.store.read((view) => view.get('embedding', 'embedding'))
    if (!embedding) return NOT_EMBEDDED
    const { notes } = await finder.tallyMemory(embedding)
    if (notes > NOTES_MAX) return `${notes} notes are too many without a server (leasehold up)`
    try {
      const provider = await openProvider(readConfig(folderOf(this.place), this.env), this.env)
      if (!provider) return 'embeddings are off'
      try {
        if (provider.name !== embedding.provider) return `embedded by ${embedding.provider}`
        const [vector] = await provider.embed([query], true)
        const meaning = new IndexedMeaning(this.store, provider)
        await meaning.ready()
        const hits = await meaning.near(pack(vector!), scopes, limit, LEAST)
        meaning.stop()
        return { hits, floor: provider.floor }
      } finally {
        await provider.close()
      }
    } catch (error) {
      return (error as Error).message
    }
  }
}
