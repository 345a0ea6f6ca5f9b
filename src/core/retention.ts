/** How long what is over stays, and how much of it: null is for ever, and any number. */
export interface Bound {
  days: number | null
  max: number | null
}

/**
 * What leaves by itself. Requests are not here: R9 promises a day for them, and no more. No setting
 * removes a lock that is held, a run that goes on or a task that is not done.
 */
export const RETENTION = {
  events: { days: 30, max: 1_000_000 },
  /** Leases that have ended, counted from when they were to expire. */
  leases: { days: 7, max: 100_000 },
  /** Runs that have ended. */
  runs: { days: 90, max: 100_000 },
  /** Landings that are over. */
  landings: { days: 90, max: 100_000 },
  /** What runs wrote: their folders. */
  output: { days: 30, max: 10_000 },
  /** Agents that were not seen, and hold nothing. */
  agents: { days: 30, max: 10_000 },
  /** Tokens that have expired or were revoked. */
  tokens: { days: 30, max: 10_000 },
  /** Tasks that are done, failed or cancelled, with their runs; `max` is of each status. */
  tasks: { days: null, max: null },
  /** Notes that were deleted, with their history. */
  notes: { days: 90, max: null },
  /** Conflicts between notes that are settled; `max` is of each way to settle them. */
  conflicts: { days: 90, max: null },
} satisfies Record<string, Bound>

export type Retained = keyof typeof RETENTION
export type Retention = Readonly<Record<Retained, Bound>>

export const DAY_MS = 24 * 3600_000

/** Beyond these nobody means a number: the schema of the configuration refuses them. */
export const DAYS_MAX = 36_500
export const ROWS_MAX = 1_000_000_000

const isBound = (value: unknown, max: number) =>
  value === null || (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= max)

/**
 * The part `retention` of a configuration, with defaults for what it leaves out: of `days`, the
 * word for all kinds that have an age, and else those above. Where it says something that cannot be
 * understood, nothing of that kind leaves: what is wrong is told elsewhere, and what is gone is
 * gone.
 */
export function retentionOf(said: unknown = {}): Retention {
  // What is no object names no number of days.
  const { days: general, ...each } = isPlain(said) ? said : { days: NaN }
  const kinds = Object.entries(RETENTION).map(([kind, { days, max }]) => {
    const usual = { days: days === null || general === undefined ? days : general, max }
    const given = each[kind]
    return [kind, boundOf(given === undefined ? {} : given, usual)]
  })
  return Object.fromEntries(kinds) as Retention
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function boundOf(given: unknown, usual: { days: unknown; max: unknown }): Bound {
  const { days, max } = isPlain(given) ? { ...usual, ...given } : NEVER
  const isSound = isBound(days, DAYS_MAX) && isBound(max, ROWS_MAX)
  return isSound ? ({ days, max } as Bound) : NEVER
}

const NEVER: Bound = { days: null, max: null }

/**
 * The last of the `oldest` events that is to go, if any does. Only a beginning goes: an event
 * that was recorded under a wall clock set back is not taken for older than those before it, and
 * takes none of them along. One under a clock set ahead stays, with all behind it, until there are
 * too many or its time has come.
 */
export function lastToForget<E extends { position: number; at: string }>(
  oldest: readonly E[],
  bound: Bound,
  head_position: number,
  now_ms: number,
): E | undefined {
  const many = bound.max === null ? Number.NEGATIVE_INFINITY : head_position - bound.max
  const old_ms = bound.days === null ? Number.NEGATIVE_INFINITY : now_ms - bound.days * DAY_MS
  const stays = ({ position, at }: E) => position > many && Date.parse(at) >= old_ms
  const first = oldest.findIndex(stays)
  return first < 0 ? oldest.at(-1) : oldest[first - 1]
}
