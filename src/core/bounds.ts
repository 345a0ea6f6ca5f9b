/** Times and sizes that rules use. One place, so that documentation and tests can name them. */

export const TTL_MS_DEFAULT = 300_000
export const TTL_MS_MIN = 1_000
export const TTL_MS_MAX = 24 * 3600_000
/** Of the locks by which our own programs agree which of them does what. */
export const ROLE_TTL_MS = 30_000

/** Reservations last longer than locks: an agent thinks between two edits. */
export const RESERVATION_TTL_MS = 900_000

/** A command's group on a host that cannot be asked is given this long past its TTL to stop. */
export const GRACE_MS = 10_000

/** The head of a line has this long to take a free lock; then the next is called. */
export const CALL_MS = 2_000

/** A ticket whose process cannot be seen lives this long after it was last spoken for. */
export const TICKET_MS = 10_000

/** One step of priority is worth this much waiting, so nobody starves behind high priority. */
export const LINE_AGING_MS = 10_000
export const TASK_AGING_MS = 600_000

export const PRIORITY_DEFAULT = 5

/** Seen again within this time, an agent's row is left alone: a write fewer per ask. */
export const SEEN_MS = 5_000

/** What is over that one write clears on its way: leases, and waiters who are gone. */
export const SWEEP_MAX = 100

/** Processes, and leases that cannot be settled yet, that one write looks at on its way. */
export const LOOKS_MAX = 200

/** Places in a line are counted as far as this. */
export const POSITION_MAX = 1_000

/** Waiters and leases that one search for a deadlock goes through. */
export const CYCLE_STEPS_MAX = 10_000

export const REQUEST_MEMORY_MS = 24 * 3600_000

/** From this priority on a task goes before those of others. */
export const PRIORITY_HIGH = 7

/** Of four starts that high priority and others both want, high priority gets at most this many. */
export const HIGH_STREAK_MAX = 3

/** How long one run may keep its user busy, unless configured. */
export const LOCK_TIMEOUT_MS = 3600_000

/** What a run is thought to take as long as none has ended, and the least it is charged. */
export const RUN_MS_GUESS = 60_000
export const RUN_MS_MIN = 1_000

/** Runs at once per dispatcher, unless configured. */
export const SLOTS_DEFAULT = 4

/** A task whose runs were lost this often is put aside. */
export const LOST_MAX = 3

/** The longest text of a note, in bytes. */
export const NOTE_BYTES_MAX = 1024 * 1024

/** A new version is compared with this many siblings at most: others wait for this write. */
export const MERGES_TRIED_MAX = 12
