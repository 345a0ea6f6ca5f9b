import type { Caller } from '../core/caller.ts'
import { planted } from '../core/planted.ts'
import { sizeOf } from '../core/size.ts'
import type { Store } from '../stores/store.ts'
import { type Budget, budgetOf } from './budget.ts'
import type { Fields, Input, Operation } from './operation.ts'
import { type Timed, turnsAt } from './turns.ts'

/**
 * Asks of a token come in turn with those of others; who has no budget need not wait. `more_ms` is
 * what an ask will take beside what is timed.
 */
export function inTurn<T>(
  store: Store,
  name: string,
  { budget }: Pick<Caller, 'budget'>,
  work: (timed: Timed) => Promise<T>,
  more_ms = 0,
): Promise<T> {
  if (!budget || planted('R49')) return work((step) => step())
  const kind = `${name} ${Math.ceil(Math.log2(more_ms + 1))}`
  return turnsAt(store).take(budget, kind, work, more_ms)
}

/** To write one row of many, or so many bytes of one, takes about so long. */
const ROW_MS = 0.1
const ROW_BYTES = 10_000

/** About how long what an ask adds takes to be written. */
export function writingMs<F extends Fields, O>(
  operation: Operation<F, O>,
  input: Input<F>,
): number {
  const rows = Object.values(operation.spends?.(input) ?? {}).reduce((sum, each) => sum + each, 0)
  return (rows + sizeOf(input) / ROW_BYTES) * ROW_MS
}

/** Counts a wait, and the lines that it stands in, for as long as it lasts. */
export async function whileCounted<F extends Fields, O, T>(
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  wait: () => Promise<T>,
  lingers_ms: () => number,
): Promise<T> {
  const budget = budgetOf(caller)
  if (!budget) return wait()
  const isInLine = operation.waits !== 'task'
  const ends = [budget.take('waits')]
  try {
    const { leases = 1 } = operation.spends?.(input) ?? {}
    if (isInLine) ends.push(budget.take('names_in_line', leases))
    return await wait()
  } finally {
    const end = () => {
      for (const each of ends) each()
    }
    const ms = lingers_ms()
    if (ms === 0) end()
    else setTimeout(end, ms).unref()
  }
}

/** What a call says beside its text: names, numbers, a sentence. That much costs nothing. */
const SMALL = 1024

/** Charges what is about to be written, or refuses. Returns what to call if it was not. */
export function spend<F extends Fields, O>(
  budget: Budget,
  operation: Operation<F, O>,
  input: Input<F>,
): Promise<() => void> {
  const size = sizeOf(input)
  if (size > SMALL) budget.store(size)
  return budget.keep(operation.spends?.(input) ?? {})
}
