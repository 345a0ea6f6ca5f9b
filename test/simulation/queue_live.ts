import { sameProcess } from '../../src/core/caller.ts'
import { dispatchNext } from '../../src/core/queue/dispatch.ts'
import { claimQueued } from '../../src/core/queue/queue.ts'
import { liveLease } from '../../src/core/locks/standing.ts'
import type { View } from '../../src/core/view.ts'
import { callerOf } from '../support/helpers.ts'
import { mustHold } from './broken.ts'
import { slotsFree, startable } from './queue_turn.ts'
import type { World } from './world.ts'

/**
 * Liveness: whoever has a free slot is given a task if any could start, and nothing otherwise.
 * Asked on a view that is dropped, so that looking changes nothing.
 */
export async function checkTurns(world: World): Promise<void> {
  const store = world.stores[world.writer]!
  for (const { name, process } of world.dispatchers) {
    await store.read((view) => {
      const dispatcher = view.get('dispatcher', `dispatcher:${name}`)
      const lease = dispatcher && liveLease(view, dispatcher.id)
      // One that crashed does not ask, though its lease may live on through a new boot.
      if (!lease || !sameProcess(lease.process, process)) return
      const projects = new Set(dispatcher.projects)
      const could = slotsFree(view, dispatcher) > 0 ? startable(view, { projects }) : []
      const ask = { dispatcher: dispatcher.id, ttl_ms: 1_000, process, token_hash: 'look' }
      judge(view, name, could, (look) => {
        return dispatchNext(look, { ...ask, agentFor: () => 'run' })?.task.id
      })
    })
  }
  await store.read((view) => {
    const as = () => callerOf('looker')
    judge(view, 'an agent', startable(view, {}), (look) => {
      return claimQueued(look, { as, ttl_ms: 1_000, process: null })?.task.id
    })
  })
}

function judge(
  view: View,
  who: string,
  could: { id: string }[],
  ask: (view: View) => string | undefined,
): void {
  const ids = could.map(({ id }) => id)
  const got = ask(view)
  mustHold('R21', got === undefined || ids.includes(got), () => {
    return `${who} was given ${got} though only ${ids.join() || 'nothing'} could start`
  })
  mustHold('L3', got !== undefined || ids.length === 0, () => {
    return `${who} was given nothing though ${ids.join()} could start`
  })
}
