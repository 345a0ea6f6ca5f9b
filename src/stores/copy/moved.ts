import { Refusal } from '../../core/refusal.ts'
import type { Head } from '../port.ts'

/**
 * Where the boot stands in a head: that of a store which was copied elsewhere. Two stores would
 * each grant the same locks under the same fences, so only the copy goes on. In the head, because
 * everybody looks there before anything else, also those who had the store open at the time.
 */
const MOVED = 'moved to '

export const movedTo = ({ boot }: Head) => (boot.startsWith(MOVED) ? boot.slice(MOVED.length) : '')

/** What takes the place of a store for the moment in which a backup does. */
export const RESTORE = 'restore'

/** The head of a store that is left for `to`, as one would write it into `LEASEHOLD_STORE`. */
export const leftFor = (to: string) => `${MOVED}${to}`

/** Refuses (`unavailable`) to write, or to copy again, a store that was copied elsewhere. */
export function refuseMoved(head: Head): void {
  const to = movedTo(head)
  if (to === '') return
  if (to === RESTORE) {
    throw new Refusal('unavailable', 'This store is being restored: nothing is written meanwhile', {
      next: 'Ask again in a moment. If no restore runs: leasehold db restore --take-back',
    })
  }
  const secret = to.startsWith('postgres') ? ', with its password' : ''
  throw new Refusal('unavailable', `This store was copied to ${to}, and only that one is written`, {
    next:
      `Set LEASEHOLD_STORE=${to}${secret}. To use this one again, without what was done there: ` +
      'leasehold db restore --take-back',
    details: { moved_to: to },
  })
}
