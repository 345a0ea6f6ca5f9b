/** How far events had come at a time of the store's own clock. Made whenever events are pruned. */
export interface EventMark {
  position: number
  at_ms: number
}

/** Which events stay: at most so many, and none that is older than this. */
export interface Keep {
  events: number
  age_ms: number
}

/**
 * The position up to which events go. `at` of an event says nothing about its age: it is the time
 * on the wall of whoever wrote it, and one wall clock that was wrong for a moment would take fresh
 * events with it. That an event was there at a mark proves that it is at least as old as the mark.
 */
export function lastToGo(
  { events, age_ms }: Keep,
  head: { position: number; now_ms: number },
  marks: EventMark[],
): number {
  const aged = marks.filter(({ at_ms }) => at_ms <= head.now_ms - age_ms)
  const byCount = head.position - events
  return Math.max(byCount, ...aged.map(({ position }) => position))
}
