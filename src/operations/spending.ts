import type { Caller } from '../core/caller.ts'
import { sizeOf } from '../core/size.ts'
import { type Uses, usedBy } from './budget.ts'
import type { Fields, Input, Operation } from './operation.ts'

/** About how long it takes to write one row, or this many bytes of one. */
const ROW_MS = 0.1
const ROW_BYTES = 5_000

/** What a call says beside its text: names, numbers, a sentence. That much costs nothing. */
const SMALL = 1024

/** Charges what is about to be written, or refuses. Returns what to call if it was not. */
export function spend<F extends Fields, O>(
  { budget, turn }: Uses,
  operation: Operation<F, O>,
  input: Input<F>,
): Promise<() => void> {
  const size = sizeOf(input)
  const spending = operation.spends?.(input) ?? {}
  const rows = Object.values(spending).reduce((sum, each) => sum + each, 0)
  turn.spend((rows + size / ROW_BYTES) * ROW_MS)
  if (size > SMALL) budget.store(size)
  return budget.keep(spending)
}

/** Counts a wait, and the lines that it stands in, for as long as it lasts. */
export async function whileCounted<F extends Fields, O, T>(
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  wait: () => Promise<T>,
  lingers_ms: () => number,
): Promise<T> {
  const uses = usedBy(caller)
  if (!uses) return wait()
  const { budget } = uses
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
