import { Refusal } from '../core/refusal.ts'
import type { Lease } from '../core/rows.ts'
import { countCommit, type RefusedWrite } from '../core/stat.ts'
import { forgetRequests, sweep } from '../core/sweep.ts'
import { type Event, NeedsKill, type Need, NotLoaded, type View } from '../core/view.ts'
import { seal } from './chain.ts'
import { grantTimeAfterBoot, instantOf } from './clock.ts'
import { explained, isRefusal } from './errors.ts'
import { Follower, type Listener } from './follower.ts'
import { Guesses } from './guesses.ts'
import { Batch, Layer } from './layer.ts'
import { Meter } from './meter.ts'
import { refuseMoved } from './moved.ts'
import { isTrouble, type Outcome, refusalsIn, revokedIn } from './outcome.ts'
import {
  Again,
  type Backend,
  type Base,
  CommitUnknown,
  type Finder,
  type Head,
  type Machine,
  type Meaning,
  NotBegun,
} from './port.ts'
import type { ReadOutput } from './run_output.ts'
import { Stops } from './stops.ts'

/** Asks decided and committed together. More gain little and make the first one wait longer. */
const BATCH_MAX = 128

/** Looking at every process that holds a lease is cheap, but not so cheap as to do it per batch. */
const PROCESS_SWEEP_MS = 1_000

interface Ask {
  decide: (view: View) => unknown
  reads: Need[]
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
  unstoppable: Set<string>
}

/**
 * One store: a single writer that gathers asks, decides them one by one over the same rows, and
 * commits them together; and readers beside it. The same for every backend.
 *
 * An answer is given only after the commit that it depends on, a refusal too: it may rest on a
 * lease that was granted in the same batch.
 */
export class Store {
  readonly machine: Machine
  /** Reads what runs of this machine wrote; undefined for a store without a place of its own. */
  output: ReadOutput | undefined
  /** What this process saw of the store. */
  readonly meter = new Meter()
  /** Finds notes by their meaning, where this process has somebody who can. */
  meaning: Meaning | undefined
  readonly isDatabase: boolean
  readonly isShared: boolean
  private readonly backend: Backend
  private readonly waiting: Ask[] = []
  private readonly listeners = new Set<Listener>()
  private follower: Follower | undefined
  private readonly stops: Stops
  private turning: Promise<void> | undefined
  private readonly batch_max: number
  private looked_ms = Number.NEGATIVE_INFINITY

  constructor(backend: Backend, machine: Machine) {
    this.backend = backend
    this.machine = machine
    this.stops = new Stops(machine)
    this.isDatabase = backend.isDatabase
    this.isShared = backend.isShared ?? false
    this.batch_max = backend.batch_max ?? BATCH_MAX
  }

  /**
   * Decides `decide` in a transaction with whatever else is waiting, and answers when that is
   * durable. `reads` names rows it will look at, so that they are loaded together.
   */
  write<T>(decide: (view: View) => T, reads: Need[] = []): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.enqueue({
        decide,
        reads,
        resolve: resolve as Ask['resolve'],
        reject,
        unstoppable: new Set(),
      })
    })
  }

  /** Looks at a snapshot, as the next sweep would leave it. What the look changes is dropped. */
  async read<T>(look: (view: View) => T): Promise<T> {
    try {
      const seen = await this.backend.snapshot((base, head) => look(this.open(base, head, 1).layer))
      this.meter.worked('read')
      return seen
    } catch (error) {
      if (isTrouble(error)) this.meter.failed('read', error)
      throw error
    }
  }

  events(after: number, limit: number): Promise<Event[]> | Event[] {
    return this.backend.events(after, limit)
  }

  stamp(): unknown {
    return this.backend.stamp?.()
  }

  get damage() {
    return this.backend.damage
  }

  head(): Promise<Head> {
    return Promise.resolve(this.backend.snapshot((_, head) => head))
  }

  /** Told of the events of every commit made through this store object; see `follow`. */
  onCommit(events: Listener['events'], reset?: () => void): () => void {
    const listener: Listener = reset ? { events, reset } : { events }
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** From now on listeners hear of all commits, whoever made them, in order and without a gap. */
  async follow(every_ms: number): Promise<void> {
    if (this.follower) return
    const { poll_ms = every_ms } = this.backend
    const follower = new Follower(this, this.listeners, await this.head(), poll_ms)
    this.follower = follower
    this.backend.listen?.(() => void follower.look())
  }

  /** Finds notes by their words; undefined where a store has no memory. */
  get finder(): Finder | undefined {
    return this.backend.finder
  }

  /** Whether nobody here has to look for what others committed. */
  get isFollowing(): boolean {
    return this.follower !== undefined
  }

  /** Whether a sweep would find something: time is up, or a process has died. */
  async isOverdue(): Promise<boolean> {
    return this.backend.snapshot((base, head) => {
      const { batch, orphaned } = this.open(base, head, 1)
      return orphaned.length > 0 || Object.keys(batch.changes).length > 0
    })
  }

  /** Finishes what was asked, then closes. */
  async close(): Promise<void> {
    this.follower?.stop()
    await this.turning
    await this.stops.ended()
    await this.turning
    await this.countLeft()
    await this.backend.close()
  }

  /** A command that was refused has no later commit that could count it. */
  private async countLeft(): Promise<void> {
    const refused = this.meter.unwritten
    if (!this.backend.isDatabase || refused.length === 0) return
    const counted = { drafts: [], asks: refused.length, refused }
    // A store that cannot count can still be closed.
    await this.write((view) => countCommit(view, counted)).catch(() => undefined)
  }

  private enqueue(ask: Ask): void {
    this.waiting.push(ask)
    this.turning ??= this.turn()
  }

  /** While one batch commits, the next one gathers. */
  private async turn(): Promise<void> {
    while (this.waiting.length > 0) {
      await this.gather()
      await this.runBatch(this.waiting.splice(0, this.batch_max), this.waiting)
    }
    // In the same step as the last look at the queue, or an ask in between would wait for ever.
    this.turning = undefined
  }

  /**
   * Waits as long as more asks come with every turn of the event loop. Those who were answered
   * together ask again one after the other; to commit the first without the rest costs a sync.
   */
  private async gather(): Promise<void> {
    for (let seen = 0; seen < this.waiting.length && seen < this.batch_max;) {
      seen = this.waiting.length
      await new Promise<void>((resolve) => void setImmediate(resolve))
    }
  }

  /** `more` come along if they are there before the batch has begun: others may write first. */
  private async runBatch(asks: Ask[], more: Ask[] = []): Promise<void> {
    try {
      const outcomes = await this.attempt(asks, more)
      this.meter.worked('write')
      outcomes.forEach((outcome, i) => this.answer(asks[i]!, outcome))
    } catch (error) {
      const forAll = error instanceof CommitUnknown || error instanceof NotBegun
      if (asks.length === 1 || forAll || isRefusal(error, 'damaged')) {
        const explanation = explained(error)
        if (isTrouble(explanation)) this.meter.failed('write', explanation)
        for (const ask of asks) ask.reject(explanation)
        return
      }
      // One ask may have spoiled the batch (too large for the disk, say): each gets its own try.
      for (const ask of asks) await this.runBatch([ask])
    }
  }

  private answer(ask: Ask, outcome: Outcome): void {
    if ('answer' in outcome) ask.resolve(outcome.answer)
    else if ('refused' in outcome) ask.reject(outcome.refused)
    else void this.stopThenAskAgain(ask, outcome.kill)
  }

  private async stopThenAskAgain(ask: Ask, { lease, group }: NeedsKill): Promise<void> {
    if (!(await this.stops.stop(lease, group))) ask.unstoppable.add(`${group.pid} ${group.start}`)
    this.enqueue(ask)
  }

  private async attempt(asks: Ask[], more: Ask[]): Promise<Outcome[]> {
    for (;;) {
      const begun = await this.begin()
      asks.push(...more.splice(0, this.batch_max - asks.length))
      try {
        refuseMoved(begun)
        await this.prefetch(begun, asks)
        const { batch, orphaned, looks } = await this.openLoaded(begun, asks.length)
        const outcomes: Outcome[] = []
        for (const [i, ask] of asks.entries()) {
          const outcome = this.decide(batch, ask)
          // Most asks find their rows loaded; to await those too costs about 4 % of the rate.
          const lacks = outcome instanceof NotLoaded
          outcomes.push(lacks ? await this.loadThenDecide(batch, asks.slice(i)) : outcome)
        }
        const refused = refusalsIn(outcomes)
        await this.count(batch, asks.length, refused)
        const events = await this.commit(batch)
        if (events === 'again') continue
        this.meter.answered(asks.length, refused, events.length > 0)
        if (looks) this.looked_ms = batch.instant.now
        if (events.length > 0) this.tell(events)
        for (const lease of [...orphaned, ...revokedIn(batch, outcomes)]) {
          void this.stopOrphan(lease)
        }
        return outcomes
      } catch (error) {
        await this.backend.rollback()
        if (!(error instanceof Again)) throw error
      }
    }
  }

  /** What keeps a batch from beginning is no fault of any ask: to try each alone would not help. */
  private async begin(): Promise<Head> {
    try {
      return await this.backend.begin()
    } catch (error) {
      throw new NotBegun(error)
    }
  }

  /**
   * Rows that asks name, and, from a store across a network, those of the sweep with them. Where
   * not even those are known, nothing is: then what the asks look at first comes along too.
   */
  private async prefetch(begun: Head, asks: Ask[]): Promise<void> {
    const needs = asks.flatMap((ask) => ask.reads)
    if (this.backend.isRemote) {
      needs.push({ table: 'stat', key: 'open' })
      const guesses = new Guesses(this.backend)
      guesses.tryOut(() => {
        const { batch } = this.open(guesses, begun, asks.length)
        if (guesses.needs.length > 0) needs.push(...this.needsOf(batch, asks))
      })
      needs.push(...guesses.needs)
    }
    await this.backend.prefetch(needs)
  }

  /** Rows that the sweep turns out to need are loaded, and it begins again. */
  private async openLoaded(begun: Head, asks: number) {
    for (;;) {
      try {
        return this.open(this.backend, begun, asks)
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw error
        await this.backend.prefetch([error.need])
      }
    }
  }

  private tell(events: Event[]): void {
    if (this.follower) this.follower.heard(events)
    else for (const listener of this.listeners) listener.events(events)
  }

  /** A batch over committed rows, with what time has brought about since the last commit. */
  private open(base: Base, begun: Head, asks: number) {
    const { instant, head } = instantOf(begun, this.machine)
    const batch = new Batch(base, head, instant, this.machine, asks)
    const layer = new Layer(batch)
    if (begun.boot !== head.boot && begun.boot !== '') grantTimeAfterBoot(layer, begun.last_ms)
    // A reader looks every time, and leaves the writer's next look alone: what it sees it drops.
    const writes = base === this.backend || base instanceof Guesses
    const looks = !writes || instant.now - this.looked_ms >= PROCESS_SWEEP_MS
    const orphaned = sweep(layer, looks ? this.machine.seat : null)
    if (looks && writes) forgetRequests(layer)
    batch.adopt(layer)
    return { batch, layer, orphaned, looks }
  }

  private decide(batch: Batch, ask: Ask): Outcome | NotLoaded {
    const layer = new Layer(batch, ask.unstoppable)
    try {
      const answer = ask.decide(layer)
      batch.adopt(layer)
      return { answer }
    } catch (error) {
      if (error instanceof NotLoaded) return error
      if (isRefusal(error, 'damaged')) throw error
      if (error instanceof NeedsKill) {
        if (error.commits) batch.adopt(layer)
        return { kill: error }
      }
      if (error instanceof Refusal && error.leaves) {
        const { type, lock, data } = error.leaves
        batch.drafts.push({ type, agent: String(data['by']), lock, task: null, data })
      }
      return { refused: error }
    }
  }

  /** Decides the first of `asks`. What the others lack is loaded along with what it lacks. */
  private async loadThenDecide(batch: Batch, asks: Ask[]): Promise<Outcome> {
    for (;;) {
      const outcome = this.decide(batch, asks[0]!)
      if (!(outcome instanceof NotLoaded)) return outcome
      await this.backend.prefetch([outcome.need, ...this.needsOf(batch, asks)])
    }
  }

  /** What asks will need, as far as can be told by trying them one after the other on guesses. */
  private needsOf(batch: Batch, asks: Ask[]): Need[] {
    const guesses = new Guesses(this.backend)
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

  /** Counts what this batch does, in its own transaction; see `countCommit`. */
  private async count(batch: Batch, asks: number, now: RefusedWrite[]): Promise<void> {
    if (!this.backend.isDatabase || batch.drafts.length === 0) return
    const refused = [...this.meter.unwritten, ...now]
    for (;;) {
      const layer = new Layer(batch)
      try {
        countCommit(layer, { drafts: batch.drafts, asks, refused })
        return batch.adopt(layer)
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw error
        await this.backend.prefetch([error.need])
      }
    }
  }

  private async commit(batch: Batch): Promise<Event[] | 'again'> {
    if (batch.drafts.length === 0 && Object.keys(batch.changes).length === 0) {
      await this.backend.rollback()
      return []
    }
    const { events, head } = seal(batch.drafts, batch.head, batch.instant.at)
    const done = await this.backend.commit({ changes: batch.changes, events, head })
    return done === 'again' ? 'again' : events
  }

  /** A command outlived its lease, or that was taken back: stop it, then sweep again. */
  private async stopOrphan(lease: Lease): Promise<void> {
    if (lease.group === null || this.stops.has(lease)) return
    const { seat } = this.machine
    const gone = await this.stops.stop(lease, lease.group)
    if (gone) await this.write((view) => void sweep(view, seat)).catch(() => undefined)
  }
}
