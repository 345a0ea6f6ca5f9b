import { Refusal, isRefusal } from '../../core/refusal.ts'
import { type Need, NeedsKill, NotLoaded } from '../../core/view.ts'
import { Guesses } from './guesses.ts'
import { type Batch, Layer } from './layer.ts'
import type { Ask, Outcome } from './outcome.ts'
import type { Base } from '../port.ts'

/** Decides one ask on a layer of its own, which becomes part of the batch if it is answered. */
export function decideOn(batch: Batch, ask: Ask): Outcome | NotLoaded {
  const layer = new Layer(batch, ask.unstoppable)
  try {
    const answer = ask.decide(layer)
    batch.adopt(layer)
    return { answer }
  } catch (error) {
    if (error instanceof NotLoaded) return error
    // A store that is damaged is no matter of one ask.
    if (isRefusal(error, 'damaged')) throw error
    if (error instanceof NeedsKill) {
      if (error.commits) batch.adopt(layer)
      return { kill: error }
    }
    if (error instanceof Refusal) leaveBehind(batch, ask, error)
    return { refused: error }
  }
}

function leaveBehind(batch: Batch, { unstoppable }: Ask, { leaves }: Refusal): void {
  if (typeof leaves === 'function') {
    const layer = new Layer(batch, unstoppable)
    leaves(layer)
    batch.adopt(layer)
  } else if (leaves) batch.drafts.push({ ...leaves, agent: leaves.data.by, task: null })
}

/** What asks will need, as far as can be told by trying them one after the other on guesses. */
export function needsOf(
  base: Base,
  batch: Batch,
  asks: Pick<Ask, 'decide' | 'unstoppable'>[],
): Need[] {
  const guesses = new Guesses(base)
  const trial = batch.over(guesses)
  for (const { decide, unstoppable } of asks) {
    const layer = new Layer(trial, unstoppable)
    guesses.tryOut(() => {
      decide(layer)
      trial.adopt(layer)
    })
  }
  return guesses.needs
}
