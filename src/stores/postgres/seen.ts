import { Refusal } from '../../core/refusal.ts'
import type { Head } from '../port.ts'
import { isBehind } from '../witness.ts'

/**
 * The newest commit that this process has seen. A schema that was dropped and made anew, or put
 * back from a dump, looks sound: that it gave more fences before is known to those who saw them.
 */
export class Seen {
  private head: Head | undefined

  /** Refuses (`damaged`) a head that is behind; else remembers it. */
  look<Of extends { head: Head }>(found: Of, shown: string): Of {
    const { head } = found
    if (this.head && isBehind(head, this.head)) {
      throw new Refusal('damaged', `${shown} was put back to an earlier state, or begun anew`, {
        next: 'If that is meant, end all leases of before: leasehold db restore --raise-epoch',
        details: { seen: this.head.position, found: head.position },
      })
    }
    this.head = head
    return found
  }

  /** Our own commit. */
  keep(head: Head): void {
    this.head = head
  }
}
