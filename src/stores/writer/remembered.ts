import type { AnyRow } from '../../core/schema/schema.ts'
import { sizeOf } from '../../core/text.ts'

/** Rows of a table that are remembered, and their bytes; beyond either it starts over. */
const ROWS_MAX = 20_000
const BYTES_MAX = 8 * 1024 * 1024
/** What says more than this is a body: it is read again when somebody asks for it. */
const ROW_MAX = 16 * 1024
/** What a row without any text takes. */
const BARE = 400

/**
 * Rows of one table as they were committed; null where there is known to be none. Bounded by their
 * bytes, and free of bodies: a thousand prompts of 2 MB would otherwise stay in memory.
 */
export class Remembered extends Map<string, AnyRow | null> {
  private bytes = 0
  private readonly bodies = new Set<string>()

  override set(key: string, row: AnyRow | null): this {
    const size = BARE + sizeOf(row)
    // A row that is replaced counts twice until they are counted anew: see `trim`.
    this.bytes += size
    if (size > ROW_MAX) this.bodies.add(key)
    return super.set(key, row)
  }

  override clear(): void {
    this.bytes = 0
    this.bodies.clear()
    super.clear()
  }

  /**
   * Between two batches: forgets bodies, and all where it has become too much. Returns whether
   * anything was forgotten.
   */
  trim(): boolean {
    const isTrimmed = this.bodies.size > 0
    for (const key of this.bodies) this.delete(key)
    this.bodies.clear()
    if (this.size <= ROWS_MAX && (this.bytes <= BYTES_MAX || this.count() <= BYTES_MAX / 2)) {
      return isTrimmed
    }
    this.clear()
    return true
  }

  /**
   * Goes through all rows. So if they take more than half of what they may, all are forgotten: the
   * next changes would soon have them counted again, and then with every batch.
   */
  private count(): number {
    this.bytes = 0
    for (const row of this.values()) this.bytes += BARE + sizeOf(row)
    return this.bytes
  }
}

export const hasBody = (row: AnyRow) => sizeOf(row) > ROW_MAX
