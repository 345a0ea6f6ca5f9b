import { Refusal } from '../../core/refusal.ts'
import type { Head } from '../port.ts'
import { isBehind } from '../witness.ts'

/**
 * The newest commit that this process has seen. A schema that was dropped and made anew, or put
 * back from a dump, looks sound: that it gave more fences before is known to those who saw them.
 */
export class Seen {
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
