import type { Hit } from '../../core/memory/search.ts'
import { NOT_EMBEDDED } from '../../operations/search_find.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import type { Meaning, Meant } from '../../stores/port.ts'
import type { Store } from '../../stores/writer/store.ts'
import { readConfig } from '../config/config.ts'
import { memoryOf } from './meaning.ts'
import { openProvider } from './providers.ts'
import { cosine, fromBytes, pack, type Packed } from './vector.ts'

/** Looked through one by one, so many take about as long as loading the model does. */
const NOTES_MAX = 20_000
const PAGE = 1_000

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
        const hits = await this.compare(provider.name, pack(vector!), scopes, limit)
        return { hits, floor: provider.floor }
      } finally {
        await provider.close()
      }
    } catch (error) {
      return (error as Error).message
    }
  }

  private async compare(
    provider: string,
    query: Packed,
    scopes: string[] | undefined,
    limit: number,
  ): Promise<Hit[]> {
    const best = new Map<string, number>()
    for (let after = ''; ;) {
      const rows = await this.store.finder!.vectors(provider, after, PAGE)
      for (const { id, scope, bytes } of rows) {
        if (!bytes || (scopes && !scopes.includes(scope))) continue
        const note = memoryOf(id)
        best.set(note, Math.max(best.get(note) ?? -1, cosine(query, fromBytes(bytes))))
      }
      const last = rows.at(-1)
      if (!last) break
      after = memoryOf(last.id)
    }
    const hits = [...best].map(([id, score]) => ({ id, score }))
    return hits.toSorted((a, b) => b.score - a.score).slice(0, limit)
  }
}
