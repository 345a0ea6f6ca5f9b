import type { Token } from '../core/schema/caller.ts'
import { endsRun, type Event, factsOf } from '../core/event.ts'
import { Refusal } from '../core/refusal.ts'
import { validToken } from '../core/token.ts'
import type { Store } from '../stores/writer/store.ts'

/** Ends what was opened with a token that does not count any more. */
export type End = (reason: Refusal) => void

interface Watched {
  ends: Set<End>
  /** The agent of the run that this token dies with; undefined if it is no token of a run. */
  agent: string | undefined
  timer: NodeJS.Timeout | undefined
}

/** A token is looked at this often anyway: events may be pruned while a process is stopped. */
const LOOK_MS = 10 * 60_000

/**
 * Ends what stays open the moment its token stops counting. Revocation and the end of a run are
 * heard of as events, whichever process or daemon made them; a token that expires has a timer.
 */
export class TokenWatch {
  private readonly watched = new Map<string, Watched>()

  constructor(private readonly store: Store) {
    store.onCommit((events) => {
      if (this.watched.size > 0) for (const event of events) this.hear(event)
    })
  }

  /**
   * Calls `end`, once, when the token with this hash stops counting, also if it has stopped since
   * it was let in. Returns what to call when nothing is open any more.
   */
  watch(hash: string, end: End): () => void {
    const known = this.watched.get(hash)
    const watched: Watched = known ?? { ends: new Set(), agent: undefined, timer: undefined }
    watched.ends.add(end)
    if (!known) {
      this.watched.set(hash, watched)
      void this.look(hash, watched)
    }
    return () => {
      if (!watched.ends.delete(end) || watched.ends.size > 0) return
      this.forget(hash, watched)
    }
  }

  /** Ends all that is open with this hash; a client whose token still counts comes back. */
  end(hash: string, reason = over()): void {
    const watched = this.watched.get(hash)
    if (!watched) return
    this.forget(hash, watched)
    for (const end of watched.ends) end(reason)
  }

  private hear(event: Event): void {
    const { type, agent, data } = event
    if (type === 'token.revoked') {
      for (const hash of this.watched.keys()) if (hash.startsWith(data.token)) this.end(hash)
    } else if (endsRun(event)) {
      const { holder } = factsOf(event)
      for (const [hash, watched] of this.watched) {
        const { agent: of } = watched
        if (of !== undefined && (of === agent || of === holder)) {
          void this.look(hash, watched)
        }
      }
    }
  }

  /** If a token cannot be checked, what it has open ends: its client asks again if it still may. */
  private async look(hash: string, watched: Watched): Promise<void> {
    const found = await this.store
      .read((view) => ({ token: validToken(view, hash), read_ms: view.now }))
      .catch(() => undefined)
    if (this.watched.get(hash) !== watched) return
    // An error of a look says nothing about the token.
    if (!found) return this.end(hash, unchecked())
    if (!found.token) return this.end(hash)
    watched.agent = agentOfRun(found.token)
    const { expires_ms } = found.token
    const left_ms = expires_ms === null ? LOOK_MS : Math.min(expires_ms - found.read_ms, LOOK_MS)
    clearTimeout(watched.timer)
    watched.timer = setTimeout(() => void this.look(hash, watched), Math.ceil(left_ms)).unref()
  }

  private forget(hash: string, watched: Watched): void {
    clearTimeout(watched.timer)
    if (this.watched.get(hash) === watched) this.watched.delete(hash)
  }
}

/** See `bindToken`. */
function agentOfRun({ created_by, agent }: Token): string | undefined {
  return created_by === 'leasehold' && agent !== null ? agent : undefined
}

function over(): Refusal {
  return new Refusal('unauthorized', 'This token has expired or was revoked meanwhile', {
    next: 'Get another: leasehold token create --role agent',
  })
}

function unchecked(): Refusal {
  return new Refusal('unavailable', 'Your token could not be checked: the store did not answer', {
    next: 'Ask again with the same request id.',
  })
}
