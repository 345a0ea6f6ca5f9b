import type { RegisteredName } from '../../operations/registry.ts'
import { MEMORY } from './memory.ts'
import type { Pen, Readings } from './pen.ts'
import { QUEUE } from './queue.ts'
import { STATS } from './stats.ts'
import { WORK } from './work.ts'

const ALL: Readings = { ...WORK, ...QUEUE, ...MEMORY, ...STATS }

/** How an answer reads, as a door's pen writes it; undefined where only its data is shown. */
export function readingOf(operation: string, answer: unknown, pen: Pen): string | undefined {
  const reading = ALL[operation as RegisteredName] as
    | ((answer: unknown, pen: Pen) => string)
    | undefined
  return reading?.(answer, pen)
}
