import type { LinePlace, Ticket } from '../../src/core/schema/lock.ts'
import type { Queue, Share } from '../../src/core/schema/queue.ts'
import { sameProcess } from '../../src/core/caller.ts'
import { claimNext } from '../../src/core/tasks/claim.ts'
import { dispatchNext } from '../../src/core/queue/dispatch.ts'
import { CALL_MS } from '../../src/core/bounds.ts'
import type { Base, Head } from '../../src/stores/port.ts'
import { liveLease } from '../../src/core/locks/standing.ts'
import { callerOf } from '../support/helpers.ts'
import { mustHold } from './broken.ts'
import type { World } from './world.ts'

/**
 * L3: for every lock that is free, if anybody waits for it and may have it, that one has been
 * called, and not longer ago than it has time to come. Judged by rows alone, at the instant of the
 * last commit: what only time or a death has freed since then is for the next sweep.
 */
export function checkCalls(base: Base, head: Head): void {
  const tickets = base.scan('tickets', '', undefined, 100_000) as Ticket[]
  for (const ticket of tickets) {
    if (ticket.cycle || !ticket.names.every((name) => isNext(base, name, ticket.id))) continue
    const { called_ms } = ticket
    const says = (what: string) => () => `nobody is called: ${what}: ${JSON.stringify(ticket)}`
    mustHold('L3', called_ms !== null, says('all that the head waits for is free'))
    mustHold('L3', head.last_ms <= called_ms! + CALL_MS, says('the head did not come in time'))
  }
}

function isNext(base: Base, name: string, ticket_id: string): boolean {
  const [first] = base.scan('line_of', name, undefined, 1) as LinePlace[]
  const lease = base.get('lease', name)
  return first?.ticket_id === ticket_id && lease?.ended_at !== null && !isBusy(base, name)
}

function isBusy(base: Base, name: string): boolean {
  const share = name.startsWith('user:') ? base.get('share', name.slice(5)) : undefined
  if (!share) return false
  const max = maxOf(share, base.get('queue', 'queue'))
  return max !== null && share.running.length >= max
}

const maxOf = (share: Share, queue: Queue | undefined) => share.max ?? (queue ? queue.user_max : 1)

/**
 * L3 for those who wait for work: whenever a step lets something be claimed or started that could
 * not be before it, those who wait for that are told.
 */
export class Openings {
  private told = false
  private deaths = 0
  private could = new Set<string>()

  constructor(private readonly world: World) {
    for (const store of world.stores) store.onOpening(() => (this.told = true))
  }

  async beforeStep(): Promise<void> {
    this.told = false
    this.deaths = this.world.machine.deaths
    this.could = await this.possible()
  }

  /**
   * A commit whose reply was lost is told of by whoever follows the store; what a death has freed
   * and nobody has written down yet, by the next sweep.
   */
  async afterStep(isReplyLost: boolean): Promise<void> {
    if (this.told || isReplyLost || this.deaths !== this.world.machine.deaths) return
    const fresh = [...(await this.possible())].filter((each) => !this.could.has(each))
    mustHold('L3', fresh.length === 0, () => `nobody was told that ${fresh.join()} could begin`)
  }

  /** Asked on views that are dropped, so that looking changes nothing. */
  private async possible(): Promise<Set<string>> {
    const found = new Set<string>()
    const store = this.world.stores[this.world.writer]!
    for (const { name, process } of this.world.dispatchers) {
      const ask = { dispatcher: `dispatcher:${name}`, ttl_ms: 1_000, process, token_hash: 'look' }
      const claim = await store.read((view) => {
        // One that crashed does not ask.
        if (!sameProcess(liveLease(view, ask.dispatcher)?.process ?? null, process))
          return undefined
        return dispatchNext(view, { ...ask, agentFor: () => 'r' })
      })
      if (claim) found.add(`a run by ${name}`)
    }
    const grant = { ttl_ms: 1_000, process: null, takeover: false }
    const claim = await store.read((view) => claimNext(view, {}, grant, callerOf('looker'))[0])
    if (claim) found.add('a claim')
    return found
  }
}
