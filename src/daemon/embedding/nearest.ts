import type { Packed } from './vector.ts'

/** Vectors kept in one piece of memory. */
const PIECE = 1_024
/** Vectors compared before others get their turn: a few milliseconds. */
const TURN = 4_096

export interface Near {
  id: string
  similarity: number
}

/**
 * Vectors in memory, each with the scope that it belongs to. A look compares all of them, or those
 * of some scopes: exact, about a millisecond for 1,000 vectors of 512 dimensions. They take a byte
 * per dimension and about 200 bytes beside that: 100,000 of them about 70 MB.
 */
export class Nearest {
  private readonly pieces: Int8Array[] = []
  private readonly scales: number[] = []
  private readonly ids: (string | undefined)[] = []
  private readonly scopes: string[] = []
  private readonly free: number[] = []
  private readonly placeOf = new Map<string, number>()

  constructor(readonly dimensions: number) {}

  get size(): number {
    return this.placeOf.size
  }

  /** Puts a vector in, in place of what `id` had before. */
  put(id: string, scope: string, { scale, parts }: Packed): void {
    if (parts.length !== this.dimensions) throw new Error(`${parts.length} dimensions`)
    this.remove(id)
    const place = this.free.pop() ?? this.ids.length
    if (place >= this.pieces.length * PIECE) this.pieces.push(new Int8Array(PIECE * parts.length))
    this.pieces[Math.floor(place / PIECE)]!.set(parts, (place % PIECE) * parts.length)
    this.scales[place] = scale
    this.ids[place] = id
    this.scopes[place] = scope
    this.placeOf.set(id, place)
  }

  remove(id: string): void {
    const place = this.placeOf.get(id)
    if (place === undefined) return
    this.placeOf.delete(id)
    this.ids[place] = undefined
    this.free.push(place)
  }

  /** The nearest vectors, best first: at least `least` alike, of some `scopes` if named. */
  async near(
    query: Packed,
    limit: number,
    { scopes, least = -1 }: { scopes?: string[] | undefined; least?: number } = {},
  ): Promise<Near[]> {
    const wide = Int32Array.from(query.parts)
    const best: Near[] = []
    for (let place = 0; place < this.ids.length; place += 1) {
      if (place % TURN === TURN - 1) await new Promise((resolve) => void setImmediate(resolve))
      const id = this.ids[place]
      if (id === undefined || (scopes && !scopes.includes(this.scopes[place]!))) continue
      const similarity = Math.min(1, this.dot(place, wide) * this.scales[place]! * query.scale)
      if (similarity >= least) insert(best, { id, similarity }, limit)
    }
    return best
  }

  private dot(place: number, query: Int32Array): number {
    const piece = this.pieces[Math.floor(place / PIECE)]!
    const from = (place % PIECE) * this.dimensions
    let sum = 0
    for (let i = 0; i < query.length; i += 1)
      sum = (sum + Math.imul(piece[from + i]!, query[i]!)) | 0
    return sum
  }
}

/** Few are better than the last of the best, so an insertion is cheap. */
function insert(best: Near[], near: Near, limit: number): void {
  if (best.length === limit && near.similarity <= best.at(-1)!.similarity) return
  let i = best.length
  while (i > 0 && best[i - 1]!.similarity < near.similarity) i -= 1
  best.splice(i, 0, near)
  if (best.length > limit) best.pop()
}
