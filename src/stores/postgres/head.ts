import { Refusal } from '../../core/refusal.ts'
import type { Head } from '../port.ts'
import { refuseNewerSchema } from '../successor.ts'
import type { TextRow } from './driver.ts'
import { SCHEMA_VERSION } from './migrate.ts'
import { refuseAnothers } from './pooled.ts'
import { HEAD } from './writes.ts'
import { isBehind } from '../witness.ts'

export interface FoundHead {
  head: Head
  commits: number
  clock_ms: number
  isDurable: boolean
  /** What each of the commits since those that were seen has changed; as many as are remembered. */
  recent: string[]
}

export function notDurable(shown: string): Refusal {
  return new Refusal('unavailable', `${shown} has synchronous_commit off for this session`, {
    next: 'An answer must be on disk before it is given: switch it on, also in your pooler.',
  })
}

/** What `beginWriting` and `beginReading` answer in the session `pid`. */
export function headOf([row]: TextRow[], shown: string, pid: string): FoundHead {
  if (!row) {
    throw new Refusal('damaged', `The store ${shown} has lost its head row`, {
      next: 'Restore a backup of the database, then: leasehold db restore --raise-epoch',
    })
  }
  const texts = new Set<keyof Head>(['hash', 'boot'])
  const fields = HEAD.map((name, i) => [name, texts.has(name) ? row[i] : Number(row[i])])
  const [commits, clock_ms, durability, mark, schema, changes] = row.slice(HEAD.length)
  refuseAnothers(mark, pid)
  refuseNewerSchema(shown, Number(schema), SCHEMA_VERSION)
  return {
    head: Object.fromEntries(fields) as Head,
    commits: Number(commits),
    clock_ms: Number(clock_ms),
    isDurable: durability !== 'off',
    recent: changes?.split('\n') ?? [],
  }
}

/**
 * The newest commit that this process has seen. A schema that was dropped and made anew, or put
 * back from a dump, looks sound: that it gave more fences before is known to those who saw them.
 */
export class SeenHead {
  private head: Head | undefined

  /** What anything that begins now must find, or something newer. */
  get newest(): Head | undefined {
    return this.head
  }

  /**
   * Refuses (`damaged`) a head that is behind `before`, which was the newest before the database
   * was asked: while its answer is under way, commits of our own may be seen. Else remembers it.
   */
  look<Of extends { head: Head }>(found: Of, before: Head | undefined, shown: string): Of {
    const { head } = found
    if (before && isBehind(head, before)) {
      throw new Refusal('damaged', `${shown} was put back to an earlier state, or begun anew`, {
        next: 'If that is meant, end all leases of before: leasehold db restore --raise-epoch',
        details: { seen: before.position, found: head.position },
      })
    }
    this.keep(head)
    return found
  }

  /** Of answers that cross, the newest stays. */
  keep(head: Head): void {
    if (!this.head || !isBehind(head, this.head)) this.head = head
  }
}
