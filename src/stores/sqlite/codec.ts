import { event } from '../../core/schema/event.ts'
import type { AnyRow } from '../../core/schema/schema.ts'
import type { Kind } from '../../core/schema/table.ts'
import type { Event } from '../../core/event.ts'
import { Codec, fromJson, perTable } from '../codec.ts'
import type { SqliteValue } from './driver.ts'

/** 2^i for every column that a table may have; sums of them stay exact. */
const POWERS = Array.from({ length: 53 }, (_, i) => 2 ** i)

export class SqliteCodec<Row> extends Codec<Row, SqliteValue> {
  encode(row: Row, into: SqliteValue[]): void {
    for (let i = 0; i < this.stored.length; i += 1) into.push(this.boundOf(row, i))
  }

  /** The value of the stored column `i` of `row`. */
  boundOf(row: Row, i: number): SqliteValue {
    const value = this.fieldOf(row, i)
    if (value === null || value === undefined) return null
    const kind = this.kinds[i]
    if (kind === 'json') return JSON.stringify(value)
    if (kind === 'bytes') return Buffer.from((value as string).slice(2), 'hex')
    return kind === 'bool' ? (value ? 1 : 0) : (value as SqliteValue)
  }

  /** Whether what follows from a row is what stands in the database, behind `names`. */
  isFollowed(row: Row, values: SqliteValue[]): boolean {
    return this.stored.every((_, i) => {
      return i < this.names.length || this.boundOf(row, i) === values[i]
    })
  }

  /** The columns in which two rows differ, as a sum of powers of two. */
  difference(before: Row, after: Row): number {
    let sum = 0
    for (let i = 0; i < this.stored.length; i += 1) {
      if (this.fieldOf(before, i) !== this.fieldOf(after, i)) sum += POWERS[i]!
    }
    return sum
  }

  /** The columns of such a sum. */
  pick(sum: number): number[] {
    return this.stored.map((_, i) => i).filter((i) => Math.floor(sum / POWERS[i]!) % 2 === 1)
  }

  protected override read(kind: Kind, value: NonNullable<SqliteValue>, name: string): unknown {
    if (kind === 'bool') return value === 1
    if (kind === 'bytes') return spelled(value as Uint8Array)
    if (kind !== 'json') return value
    try {
      return fromJson(value as string)
    } catch {
      throw new Unreadable(`a row whose ${name} is not JSON`)
    }
  }
}

/** What stands in the store cannot be what we wrote there. */
export class Unreadable extends Error {}

/** Bytes as PostgreSQL spells them. */
function spelled(bytes: Uint8Array): string {
  return String.raw`\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`
}

export const CODECS = perTable((table) => new SqliteCodec<AnyRow>(table))

export const EVENT_CODEC = new SqliteCodec<Event>(event)
