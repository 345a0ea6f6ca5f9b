/**
 * Bugs on purpose, one per promise: each promise's test is run once with its bug switched on and
 * must then fail. The switch exists in test builds only; elsewhere `planted` is constant false and
 * the bundler removes every use of it.
 */
declare const LEASEHOLD_TEST_BUILD: boolean | undefined

export type Promised =
  | 'S1'
  /** A look at a process that failed counts as proof that it is dead. */
  | 'S1 look'
  | 'S2'
  | 'S3'
  /** The high-water mark of fences beside a store is not asked. */
  | 'S3 witness'
  | 'S4'
  | 'S5'
  | 'S6'
  | 'S7'
  | 'S8'
  | 'S9'
  /** A whole file is written over what the agent has not seen. */
  | 'S9 seen'
  | 'S10'
  | 'S11'
  | 'S12'
  /** A process group is signalled without a look for its mark. */
  | 'R8'
  /** What the agent of a run reserved outlives the run. */
  | 'R23'
  | 'R27'
  | 'L3'
  /** A leader goes on though another leads, and believes that nobody else has written. */
  | 'R37'
  /** A write that got past the hooks is noticed by nobody. */
  | 'R52 net'
  /** What a write touches is not held to the scope of its token. */
  | 'R48'
  /** Programs count without a person's approval, and hooks let edits of state folders pass. */
  | 'R50'
  /** What clients carry is not looked at: only processes tell who asks. */
  | 'R51'
  | 'R53'
  /** A lander moves the target without a look at the term that git knows. */
  | 'R55'
  /** Saying that a task is done is enough. */
  | 'R55 proof'
  /** Worktrees are removed by force, whatever is in them. */
  | 'R54'
  | 'R61'
  /** A value that is lent is lent again. */
  | 'R54 lent'
  /** No budget is ever used up, and nobody is held up. */
  | 'R49'

let active: string | undefined

export function plant(bug: Promised | undefined): void {
  active = bug
}

export function planted(bug: Promised): boolean {
  return typeof LEASEHOLD_TEST_BUILD !== 'undefined' && LEASEHOLD_TEST_BUILD && active === bug
}
