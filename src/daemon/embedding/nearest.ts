import type { Packed } from './vector.ts'

/** Vectors of one leaf, and children of one branch; what grows beyond that is split in two. */
const LEAF_MAX = 128
const BRANCH_MAX = 24
/** Vectors that one look compares: what makes a search cost the same at any size. */
const LOOK_MAX = 3_000
/** Vectors kept in one piece of memory. */
const PIECE = 1_024
const MEANS_ROUNDS = 4

interface Leaf {
  kind: 'leaf'
  parent: Branch | null
  /** The sum of what is below: its direction is where this part of the tree lies. */
  middle: Float32Array
  length: number
  places: number[]
}

interface Branch {
  kind: 'branch'
  parent: Branch | null
  middle: Float32Array
  length: number
  children: Part[]
}

type Part = Leaf | Branch

export interface Near {
  id: string
  similarity: number
}

/**
 * An index of vectors in memory: a tree of clusters that grows by splitting, as a B-tree does. A
 * look goes to the nearest clusters first, and compares at most `LOOK_MAX` vectors; below that
 * size it is exact. One group of vectors (a scope) can be looked at alone.
 *
 * It takes one byte per dimension and about 200 bytes beside them: 100,000 vectors of 512
 * dimensions take about 70 MB.
 */
export class Nearest {
  private readonly pieces: Int8Array[] = []
  private readonly scales: number[] = []
  private readonly ids: (string | undefined)[] = []
  private readonly groups: string[] = []
  private readonly leaves: Leaf[] = []
  private readonly free: number[] = []
  private readonly placeOf = new Map<string, number>()
  private readonly inGroup = new Map<string, Set<number>>()
  private root: Part

  constructor(readonly dimensions: number) {
    this.root = this.newLeaf()
  }

  get size(): number {
    return this.placeOf.size
  }

  has(id: string): boolean {
    return this.placeOf.has(id)
  }

  /** Puts a vector in, in place of what `id` had before. */
  put(id: string, group: string, { scale, parts }: Packed): void {
    if (parts.length !== this.dimensions) throw new Error(`${parts.length} dimensions`)
    this.remove(id)
    const place = this.free.pop() ?? this.ids.length
    if (place >= this.pieces.length * PIECE) this.pieces.push(new Int8Array(PIECE * parts.length))
    this.pieces[Math.floor(place / PIECE)]!.set(parts, (place % PIECE) * parts.length)
    this.scales[place] = scale
    this.ids[place] = id
    this.groups[place] = group
    this.placeOf.set(id, place)
    const places = this.inGroup.get(group) ?? new Set()
    this.inGroup.set(group, places.add(place))
    this.insert(place)
  }

  remove(id: string): void {
    const place = this.placeOf.get(id)
    if (place === undefined) return
    this.placeOf.delete(id)
    this.ids[place] = undefined
    const group = this.groups[place]!
    const places = this.inGroup.get(group)!
    places.delete(place)
    if (places.size === 0) this.inGroup.delete(group)
    const leaf = this.leaves[place]!
    leaf.places.splice(leaf.places.indexOf(place), 1)
    for (let part: Part | null = leaf; part; part = part.parent) this.shift(part, place, -1)
    this.free.push(place)
  }

  /** The nearest vectors, best first: at least `least` alike, of one `group` if named. */
  near(query: Packed, limit: number, { group, least = -1 }: NearOptions = {}): Near[] {
    const found = new Best(limit, least)
    const wide = Int32Array.from(query.parts)
    const look = (places: Iterable<number>) => {
      for (const place of places) {
        found.add(place, this.dot(place, wide) * this.scales[place]! * query.scale)
      }
    }
    const alone = group === undefined ? undefined : (this.inGroup.get(group) ?? new Set<number>())
    if (alone && alone.size <= LOOK_MAX) look(alone)
    else
      this.walk(Float32Array.from(query.parts), (places) =>
        look(alone ? places.filter((p) => alone.has(p)) : places),
      )
    return found.list().map(({ place, score }) => {
      return { id: this.ids[place]!, similarity: Math.min(1, score) }
    })
  }

  /** Leaves in the order of how near they are, until so many vectors were looked at. */
  private walk(query: Float32Array, look: (places: number[]) => void): void {
    const open = [{ part: this.root, score: 1 }]
    for (let looked = 0; open.length > 0 && looked < LOOK_MAX;) {
      let best = 0
      for (let i = 1; i < open.length; i += 1) if (open[i]!.score > open[best]!.score) best = i
      const { part } = open[best]!
      open[best] = open.at(-1)!
      open.pop()
      if (part.kind === 'branch') {
        for (const child of part.children) open.push({ part: child, score: this.lie(child, query) })
        continue
      }
      look(part.places)
      looked += part.places.length
    }
  }

  /** How near a part of the tree lies: a cosine, but for the length of the query. */
  private lie({ middle, length }: Part, query: Float32Array): number {
    return length === 0 ? -1 : product(middle, query) / length
  }

  private dot(place: number, query: Int32Array): number {
    const piece = this.pieces[Math.floor(place / PIECE)]!
    const from = (place % PIECE) * this.dimensions
    let [a, b, i] = [0, 0, 0]
    for (; i + 1 < query.length; i += 2) {
      a = (a + Math.imul(piece[from + i]!, query[i]!)) | 0
      b = (b + Math.imul(piece[from + i + 1]!, query[i + 1]!)) | 0
    }
    if (i < query.length) a = (a + Math.imul(piece[from + i]!, query[i]!)) | 0
    return a + b
  }

  private partsAt(place: number): Int8Array {
    const from = (place % PIECE) * this.dimensions
    return this.pieces[Math.floor(place / PIECE)]!.subarray(from, from + this.dimensions)
  }

  private shift(part: Part, place: number, by: 1 | -1): void {
    const { middle } = part
    const parts = this.partsAt(place)
    const scale = this.scales[place]! * by
    for (let i = 0; i < middle.length; i += 1) middle[i]! += parts[i]! * scale
    part.length = lengthOf(middle)
  }

  private insert(place: number): void {
    const parts = Float32Array.from(this.partsAt(place))
    let part = this.root
    while (part.kind === 'branch') {
      this.shift(part, place, 1)
      part = this.nearestOf(part.children, parts)
    }
    this.shift(part, place, 1)
    part.places.push(place)
    this.leaves[place] = part
    if (part.places.length > LEAF_MAX) this.splitLeaf(part)
  }

  private nearestOf(parts: Part[], query: Float32Array): Part {
    let [best, nearest] = [Number.NEGATIVE_INFINITY, parts[0]!]
    for (const part of parts) {
      const score = this.lie(part, query)
      if (score > best) [best, nearest] = [score, part]
    }
    return nearest
  }

  private newLeaf(): Leaf {
    return { kind: 'leaf', parent: null, middle: this.blank(), length: 0, places: [] }
  }

  private newBranch(): Branch {
    return { kind: 'branch', parent: null, middle: this.blank(), length: 0, children: [] }
  }

  private blank(): Float32Array {
    return new Float32Array(this.dimensions)
  }

  private splitLeaf(leaf: Leaf): void {
    const vectors = leaf.places.map((place) => {
      const scale = this.scales[place]!
      return Float32Array.from(this.partsAt(place), (part) => part * scale)
    })
    const sides = twoMeans(vectors)
    const halves = [this.newLeaf(), this.newLeaf()] as const
    leaf.places.forEach((place, i) => {
      const half = halves[sides[i]!]
      half.places.push(place)
      addTo(half.middle, vectors[i]!)
      this.leaves[place] = half
    })
    for (const half of halves) half.length = lengthOf(half.middle)
    this.replace(leaf, halves)
  }

  private splitBranch(branch: Branch): void {
    const sides = twoMeans(branch.children.map(({ middle }) => middle))
    const halves = [this.newBranch(), this.newBranch()] as const
    branch.children.forEach((child, i) => {
      const side = halves[sides[i]!]
      side.children.push(child)
      child.parent = side
      addTo(side.middle, child.middle)
    })
    for (const half of halves) half.length = lengthOf(half.middle)
    this.replace(branch, halves)
  }

  /** Two in place of one: the tree grows at its root when all above are full. */
  private replace(old: Part, halves: readonly [Part, Part]): void {
    const { parent } = old
    if (!parent) {
      const { middle, length } = old
      const root: Branch = { kind: 'branch', parent: null, middle, length, children: [...halves] }
      for (const half of halves) half.parent = root
      this.root = root
      return
    }
    parent.children.splice(parent.children.indexOf(old), 1, ...halves)
    for (const half of halves) half.parent = parent
    if (parent.children.length > BRANCH_MAX) this.splitBranch(parent)
  }
}

interface NearOptions {
  group?: string | undefined
  least?: number
}

function product(a: Float32Array, b: Float32Array): number {
  let [x, y, i] = [0, 0, 0]
  for (; i + 1 < a.length; i += 2) {
    x += a[i]! * b[i]!
    y += a[i + 1]! * b[i + 1]!
  }
  return i < a.length ? x + y + a[i]! * b[i]! : x + y
}

const lengthOf = (vector: Float32Array) => Math.sqrt(product(vector, vector))

function addTo(middle: Float32Array, vector: Float32Array): void {
  for (let i = 0; i < middle.length; i += 1) middle[i]! += vector[i]!
}

/** Which of two sides each vector is on. Nothing is drawn at random: the same every time. */
function twoMeans(vectors: Float32Array[]): (0 | 1)[] {
  const lengths = vectors.map((each) => lengthOf(each) || 1)
  const farFrom = (from: Float32Array) => {
    const scores = vectors.map((vector, i) => product(from, vector) / lengths[i]!)
    return vectors[scores.indexOf(Math.min(...scores))]!
  }
  const first = farFrom(vectors[0]!)
  let [a, b] = [first, farFrom(first)]
  let sides: (0 | 1)[] = []
  for (let round = 0; round < MEANS_ROUNDS; round += 1) {
    const [long, wide] = [lengthOf(a), lengthOf(b)]
    sides = vectors.map((each) => (product(each, a) * wide >= product(each, b) * long ? 0 : 1))
    ;[a, b] = [new Float32Array(first.length), new Float32Array(first.length)]
    vectors.forEach((vector, i) => addTo(sides[i] === 0 ? a : b, vector))
  }
  // All alike: any halves will do, as long as both have some.
  const whole = !sides.includes(0) || !sides.includes(1)
  return whole ? vectors.map((_, i) => (i % 2 === 0 ? 0 : 1)) : sides
}

/** The best so many, kept in order: few are better than the last, so an insertion is cheap. */
class Best {
  private readonly kept: { place: number; score: number }[] = []

  constructor(
    private readonly limit: number,
    private readonly least: number,
  ) {}

  add(place: number, score: number): void {
    const { kept, limit } = this
    if (score < this.least || (kept.length === limit && score <= kept.at(-1)!.score)) return
    let i = kept.length
    while (i > 0 && kept[i - 1]!.score < score) i -= 1
    kept.splice(i, 0, { place, score })
    if (kept.length > limit) kept.pop()
  }

  list(): { place: number; score: number }[] {
    return this.kept
  }
}
