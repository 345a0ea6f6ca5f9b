import type { Caller, Spending } from '../core/caller.ts'
import type { HeldCounts } from '../core/paths/held.ts'
import { planted } from '../core/planted.ts'
import { Refusal } from '../core/refusal.ts'
import { Company, LATE_MS, Pace, type PaceTurn } from './pace.ts'
import { sizeOf } from '../core/text.ts'
import type { Fields, Input, Operation } from './operation.ts'

const MB = 1024 * 1024
const HOUR_MS = 3600_000
/** When a refused token should ask again: short calls soon end, the rest takes longer. */
const MOMENT_SECONDS = 1
const LONG_SECONDS = 30
/** For one token, what is in the store is counted no more often than this. */
const COUNT_MS = 2_000

/**
 * What one token may have of what all share, and in plain words what that is. Far above what thirty
 * agents of one developer use. Admins have no budget: nothing that a token does refuses them.
 */
export const LIMITS = {
  bytes_under_way: { max: 16 * MB, all: 96 * MB, what: 'bytes of requests and answers at once' },
  waits: { max: 1_200, all: 10_000, what: 'open waits' },
  names_in_line: { max: 10_000, all: 100_000, what: 'names of locks that are waited for' },
  streams: { max: 200, all: 4_000, what: 'open streams' },
  leases: { max: 2_000, all: Infinity, what: 'locks and reservations held' },
  globs: { max: 300, all: Infinity, what: 'reservations of patterns' },
  tasks_waiting: { max: 100_000, all: Infinity, what: 'tasks that wait' },
  bytes_stored: { max: 128 * MB, all: Infinity, what: 'bytes of text stored in an hour' },
} as const

type Kept = keyof Spending
type Kind = keyof typeof LIMITS
/** What is given back when it ends. */
type Open = Exclude<Kind, Kept | 'bytes_stored'>

const NEXT: Record<Kind, string> = {
  bytes_under_way: 'Ask again in a moment, or send less at once.',
  waits: 'Open fewer waits at once, or use a token for each agent.',
  names_in_line: 'Wait for fewer locks at once.',
  streams: 'Share one stream, or use a token for each agent.',
  leases: 'Release what you do not need, or use a token for each agent.',
  globs: 'Release some, or reserve files and folders rather than patterns.',
  tasks_waiting: 'Finish or cancel some of them before you add more.',
  bytes_stored: 'Keep large content in files and give their names.',
}

/** `rate_limited`: which budget is used up, how much it is, and when to come back. */
function usedUp(kind: Kind, limit: number, retry_after_seconds: number): Refusal {
  const { what } = LIMITS[kind]
  const whose = limit === LIMITS[kind].max ? 'This token' : 'Everybody together'
  // What a token keeps does not become less by waiting.
  const lasting = kind === 'leases' || kind === 'globs' || kind === 'tasks_waiting'
  return new Refusal('rate_limited', `${whose} may have ${limit} ${what}, and has that many`, {
    next: NEXT[kind],
    details: { budget: kind, limit, retry_after_seconds, ...(lasting && { lasting }) },
  })
}

/** Others ask too, and this token has had its share. */
function tooFast(): Refusal {
  const retry_after_seconds = LATE_MS / 1000
  return new Refusal('rate_limited', 'This token asks for more than its share of the server', {
    next: 'Ask for less at once, or use a token for each agent.',
    details: { budget: 'time', retry_after_seconds },
  })
}

const none = () => ({ bytes_under_way: 0, waits: 0, names_in_line: 0, streams: 0 })

/** Counts what a token keeps in the store, by the agent that it names. */
type Count = (kind: Kept) => Promise<Partial<HeldCounts>>

/** What an ask uses of what all share. */
export interface Uses {
  budget: Budget
  turn: PaceTurn
}

/** What one token uses. */
export class Budget {
  private readonly pace: Pace
  private readonly open = none()
  /**
   * As counted last, and all that was asked for since. A daemon that was just started has counted
   * nothing yet, and so lets a token have up to twice as much.
   */
  private readonly kept: Record<Kept, number> = { leases: 0, globs: 0, tasks_waiting: 0 }
  private readonly counted_ms: Partial<Record<Kept, number>> = {}
  private readonly counting: Partial<Record<Kept, Promise<void>>> = {}
  /** Of `bytes_stored`: how many were used at `spent_ms`. They come back over an hour. */
  private spent = 0
  private spent_ms = 0

  constructor(
    private readonly shared: Record<Open, number>,
    company: Company,
    private readonly count: Count,
  ) {
    this.pace = new Pace(company)
  }

  /** Nothing is open with this token, and nothing need be remembered of it. */
  get isIdle(): boolean {
    return Object.values(this.open).every((used) => used === 0) && this.spentNow() === 0
  }

  /** Waits until an ask of this kind may begin, or refuses with `rate_limited`. */
  async turn(kind: string): Promise<PaceTurn> {
    const turn = await this.pace.turn(kind)
    if (!turn) throw tooFast()
    return turn
  }

  /** Takes `amount`, or refuses with `rate_limited`. Returns what gives it back, once. */
  take(kind: Open, amount = 1): () => void {
    const { max, all } = LIMITS[kind]
    if (!planted('R49')) {
      const seconds = kind === 'bytes_under_way' ? MOMENT_SECONDS : LONG_SECONDS
      if (this.open[kind] + amount > max) throw usedUp(kind, max, seconds)
      if (this.shared[kind] + amount > all) throw usedUp(kind, all, seconds)
    }
    return this.add(kind, amount)
  }

  /** The same without a refusal, for what is there already: it only counts against the next. */
  add(kind: Open, amount: number): () => void {
    this.open[kind] += amount
    this.shared[kind] += amount
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.open[kind] -= amount
      this.shared[kind] -= amount
    }
  }

  /** `size` bytes are about to be written; they come back little by little. */
  store(size: number): void {
    const { max } = LIMITS.bytes_stored
    const used = this.spentNow() + size
    if (used > max && !planted('R49')) {
      throw usedUp('bytes_stored', max, Math.ceil((((used - max) / max) * HOUR_MS) / 1000))
    }
    this.spent = used
    this.spent_ms = performance.now()
  }

  private spentNow(): number {
    const back = ((performance.now() - this.spent_ms) / HOUR_MS) * LIMITS.bytes_stored.max
    return Math.max(0, this.spent - back)
  }

  /**
   * An ask is about to add to what this token keeps. What is there is looked up only when so much
   * was asked for since the last look that it may be too much. Returns what to tell what was added
   * in the end.
   */
  async keep(spending: Spending): Promise<(added: Spending) => void> {
    const kinds = Object.entries(spending) as [Kept, number][]
    for (const [kind, amount] of kinds) {
      if (this.kept[kind] + amount > LIMITS[kind].max) await this.recount(kind)
      const { max } = LIMITS[kind]
      const isOver = this.kept[kind] + amount > max
      if (isOver && !planted('R49')) throw usedUp(kind, max, COUNT_MS / 1000)
    }
    for (const [kind, amount] of kinds) this.kept[kind] += amount
    return (added) => {
      for (const [kind, amount] of kinds) {
        this.kept[kind] = Math.max(0, this.kept[kind] - amount + (added[kind] ?? 0))
      }
    }
  }

  private async recount(kind: Kept): Promise<void> {
    const counted_ms = this.counted_ms[kind] ?? Number.NEGATIVE_INFINITY
    if (performance.now() - counted_ms < COUNT_MS) return
    this.counting[kind] ??= this.lookUp(kind).finally(() => delete this.counting[kind])
    await this.counting[kind]
  }

  private async lookUp(kind: Kept): Promise<void> {
    const before = { ...this.kept }
    const held = await this.count(kind)
    for (const [each, amount] of Object.entries(held) as [Kept, number][]) {
      this.counted_ms[each] = performance.now()
      // What was asked for meanwhile may be among these or not: it counts.
      this.kept[each] = amount + Math.max(0, this.kept[each] - before[each])
    }
  }
}

/** What counts for this caller, if anything: rules know only that there is something. */
export const usedBy = ({ uses }: Pick<Caller, 'uses'>) => uses as Uses | undefined

/** Tokens whose budgets are remembered though nothing of theirs is open. */
const REMEMBERED_MAX = 1_000

/** The budgets of all tokens of one daemon. */
export class Budgets {
  /** Admins have none, but they are company. */
  readonly company = new Company()
  private readonly shared = none()
  private readonly budgets = new Map<string, Budget>()

  constructor(private readonly countOf: (agent: string) => Count) {}

  /** The budget of the token with this hash, which names `agent`. */
  of(hash: string, agent: string): Budget {
    let budget = this.budgets.get(hash)
    if (!budget) {
      this.forgetIdle()
      budget = new Budget(this.shared, this.company, this.countOf(agent))
      this.budgets.set(hash, budget)
    }
    return budget
  }

  private forgetIdle(): void {
    if (this.budgets.size < REMEMBERED_MAX) return
    for (const [hash, budget] of this.budgets) if (budget.isIdle) this.budgets.delete(hash)
  }
}

/** About how long it takes to write one row, or this many bytes of one. */
const ROW_MS = 0.1
const ROW_BYTES = 5_000

/** What a call says beside its text: names, numbers, a sentence. That much costs nothing. */
const SMALL = 1024

/** Charges what is about to be written, or refuses. Returns what to tell what was added. */
export function spend<F extends Fields, O>(
  { budget, turn }: Uses,
  operation: Operation<F, O>,
  input: Input<F>,
): Promise<(added: Spending) => void> {
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
