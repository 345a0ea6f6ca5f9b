import type { OutputOf } from '../../client/calls.ts'
import type { ShownEvent } from './live.ts'

export type WholeTask = OutputOf<'task.get'>
export type QueueStatus = OutputOf<'queue.status'>

/** Which events make what a view has asked for out of date. */

export const aboutMemory = ({ type }: ShownEvent) => /^(?:memory|conflict|duplicate)/.test(type)

export const aboutQueue = ({ type }: ShownEvent) =>
  /^(?:task|run|queue|dispatcher|lease)\./.test(type)

export const aboutTask = (id: string) => (event: ShownEvent) =>
  event.task === id || event.lock === `task:${id}`

/** Who held what an event is about; whoever caused it may be another. */
export function holderIn({ data, agent }: ShownEvent): string {
  const { holder } = data
  return typeof holder === 'string' ? holder : agent
}
