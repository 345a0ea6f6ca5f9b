import type { Lease } from '../../core/schema/lock.ts'
import { callHeads, opensWork } from '../../core/locks/calls.ts'
import { forgetInPassing } from '../../core/forget.ts'
import { grantTimeAfterBoot } from '../../core/locks/restore.ts'
import { RETENTION, type Retention } from '../../core/retention.ts'
import { countCommit } from '../../core/stats/stat.ts'
import { settleQuietly, sweep, UNBOUNDED } from '../../core/locks/sweep.ts'
import { type Need, type NeedsKill, NotLoaded, type View } from '../../core/view.ts'
import type { Event } from '../../core/event.ts'
import { seal } from './chain.ts'
import { decideOn, needsOf } from './deciding.ts'
import {
  type Ask,
  type Committed,
  explained,
  isTrouble,
  type Outcome,
  refusalsIn,
  revokedIn,
} from './outcome.ts'
import { isRefusal } from '../../core/refusal.ts'
import { Follower, type Listener, SILENT, tellEach } from './follower.ts'
import { Gathering } from './gathering.ts'
import { Guesses, untilLoaded } from './guesses.ts'
import { type Batch, batchOver, Layer } from './layer.ts'
import { Meter } from './meter.ts'
import { refuseMoved } from '../copy/moved.ts'
import {
  Again,
  type Backend,
  type Base,
  CommitUnknown,
  type Counter,
  type Finder,
  type Head,
  type Leader,
  type Meaning,
  NotBegun,
  type Sought,
} from '../port.ts'
import type { Machine } from '../../machine/machine.ts'
import { Rounds } from './rounds.ts'
import type { ReadOutput } from '../../machine/run_output.ts'
import { Stops } from './stops.ts'

/** Asks decided and committed together. More gain little and make the first one wait longer. */
const BATCH_MAX = 128

/**
 * One store: a single writer that gathers asks, decides them one by one over the same rows, and
 * commits them together; and readers beside it. The same for every backend.
 *
 * An answer is given only after the commit that it depends on, a refusal too: it may rest on a
 * lease that was granted in the same batch.
 */
export class Store {
  /** Reads what runs of this machine wrote; undefined for a store without a place of its own. */
  output: ReadOutput | undefined
  /** Which host this is to the others that use the store: see src/machine/host.ts. */
  host: () => string = () => this.machine.host
  /** What this process saw of the store. */
  readonly meter = new Meter()
  /** Finds notes by their meaning, where this process has somebody who can. */
  meaning: Meaning | undefined
  readonly gathering = new Gathering()
  /** Who decides what is asked here, where another process does. */
  leader: Leader | undefined
  /** What leaves by itself, and when. */
  retention: Retention = RETENTION
  readonly counter: Counter
  readonly leaders: Backend['leaders']
  readonly isDatabase: boolean
  readonly isShared: boolean
  isClosed = false
  private readonly waiting: Ask[] = []
  private readonly listeners = new Set<Listener>()
  private follower: Follower | undefined
  private readonly stops: Stops
  private turning: Promise<void> | undefined
  private readonly batch_max: number
  private readonly rounds = new Rounds()

  constructor(
    private readonly backend: Backend,
    readonly machine: Machine,
  ) {
    this.stops = new Stops(machine)
    this.counter = backend.counter
    this.leaders = backend.leaders
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

  /**
   * Looks at a snapshot as the next sweep would leave it, or, not swept, as it is: for rows that no
   * sweep changes, at a fraction of the cost. What the look changes is dropped.
   */
  async read<T>(look: (view: View) => T, isSwept = true): Promise<T> {
    try {
      const seen = await this.backend.snapshot((base, head) => {
        const asIs = () => new Layer(batchOver(base, head, this.machine))
        return look(isSwept ? this.open(base, head, 1).layer : asIs())
      })
      this.meter.worked('read')
      return seen
    } catch (error) {
      if (isTrouble(error)) this.meter.failed('read', error)
      throw error
    }
  }

  /** See `Backend.events`. */
  events(after: number, limit: number, sought?: Sought): Promise<Event[]> | Event[] {
    return this.backend.events(after, limit, sought)
  }

  /** See `Backend.stamp`. */
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
  onCommit(events: Listener['events'], reset = () => {}, ended: Listener['ended'] = () => {}) {
    const listener: Listener = { ...SILENT, events, reset, ended }
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  /**
   * Told when something may be claimed or started that could not before, by a commit of ours, or
   * once `follow` is called of anybody: what others changed is not known, so each of them counts.
   */
  onOpening(opened: () => void): () => void {
    const listener: Listener = { ...SILENT, reset: opened, opened }
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
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

  /** Clears away all that is over: time is up, or a process has died. Writes only if any is. */
  async sweep(): Promise<void> {
    const isOver = await this.backend.snapshot((base, head) => {
      const { batch, swept } = this.open(base, head, 1)
      return swept.orphaned.length > 0 || Object.keys(batch.changes).length > 0
    })
    if (!isOver) return
    this.rounds.restart()
    do await this.write(() => undefined)
    while (this.rounds.isUnderWay)
  }

  /** Finishes what was asked, then closes. */
  async close(): Promise<void> {
    this.isClosed = true
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
      await this.gathering.whole(this.waiting, this.batch_max)
      const asks = this.waiting.splice(0, this.batch_max)
      await this.runBatch(asks, this.waiting)
      this.gathering.done(asks.length)
    }
    // In the same step as the last look at the queue, or an ask in between would wait for ever.
    this.turning = undefined
  }

  /** `more` come along if they are there before the batch has begun: others may write first. */
  private async runBatch(asks: Ask[], more: Ask[] = []): Promise<void> {
    let done: Committed
    try {
      done = await this.attempt(asks, more)
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
      return
    }
    // Not within the try: what goes wrong after the commit must never have the batch done again.
    this.settle(done, asks)
  }

  /** The batch is durable: tells those who listen, answers those who asked, stops what is left. */
  private settle(done: Committed, asks: Ask[]): void {
    const { batch, outcomes, refused, events, opens, orphaned } = done
    this.meter.worked('write')
    this.meter.answered(asks.length, refused, events.length > 0)
    if (this.follower) this.follower.heard(events)
    else if (events.length > 0) tellEach(this.listeners, (listener) => listener.events(events))
    if (opens) tellEach(this.listeners, (listener) => listener.opened())
    for (const lease of [...orphaned, ...revokedIn(batch, outcomes)]) void this.stopOrphan(lease)
    outcomes.forEach((outcome, i) => this.answer(asks[i]!, outcome))
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

  private async attempt(asks: Ask[], more: Ask[]): Promise<Committed> {
    for (;;) {
      const begun = await this.begin()
      asks.push(...more.splice(0, this.batch_max - asks.length))
      try {
        refuseMoved(begun)
        await this.prefetch(begun, asks)
        const { batch, swept } = await untilLoaded(this.backend, () =>
          this.open(this.backend, begun, asks.length),
        )
        const outcomes: Outcome[] = []
        for (const [i, ask] of asks.entries()) {
          const outcome = decideOn(batch, ask)
          // Most asks find their rows loaded; to await those too costs about 4 % of the rate.
          const lacks = outcome instanceof NotLoaded
          outcomes.push(lacks ? await this.loadThenDecide(batch, asks.slice(i)) : outcome)
        }
        const refused = refusalsIn(outcomes)
        await this.conclude(batch, (view) => callHeads(view, batch.changes))
        if (this.isDatabase && batch.drafts.length > 0) {
          const all = [...this.meter.unwritten, ...refused]
          const counted = { drafts: batch.drafts, asks: asks.length, refused: all }
          await this.conclude(batch, (view) => countCommit(view, counted))
        }
        const opens = opensWork(batch.changes, (table, key) => this.backend.get(table, key))
        const events = await this.commit(batch)
        if (events === 'again') continue
        this.rounds.done(swept, batch.instant.now)
        return { batch, outcomes, refused, events, opens, orphaned: swept.orphaned }
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
        if (guesses.needs.length > 0) needs.push(...needsOf(this.backend, batch, asks))
      })
      needs.push(...guesses.needs)
    }
    await this.backend.prefetch(needs)
  }

  /** What many machines share has daemons; each machine has a configuration of its own. */
  private forget(layer: Layer, asks: number, isFirst: boolean): void {
    const retention = isFirst && !this.isShared ? this.retention : undefined
    if (isFirst || !this.backend.isRemote) forgetInPassing(layer, asks, retention)
  }

  /** A batch over committed rows, with what time has brought about since the last commit. */
  private open(base: Base, begun: Head, asks: number) {
    const batch = batchOver(base, begun, this.machine, asks)
    const { head, instant } = batch
    const layer = new Layer(batch)
    if (begun.boot !== head.boot && begun.boot !== '') grantTimeAfterBoot(layer, begun.last_ms)
    // A reader looks every time, and leaves the writer's next look alone: what it sees it drops.
    const writes = base === this.backend || base instanceof Guesses
    const from = writes ? this.rounds.next(instant.now) : {}
    const swept = sweep(layer, this.machine.seat, from, writes ? undefined : UNBOUNDED)
    if (!writes) callHeads(layer, layer.changes)
    else this.forget(layer, asks, this.rounds.isFirst(from))
    batch.adopt(layer)
    return { batch, layer, swept }
  }

  /** Decides the first of `asks`. What the others lack is loaded along with what it lacks. */
  private async loadThenDecide(batch: Batch, asks: Ask[]): Promise<Outcome> {
    for (;;) {
      const outcome = decideOn(batch, asks[0]!)
      if (!(outcome instanceof NotLoaded)) return outcome
      await this.backend.prefetch([outcome.need, ...needsOf(this.backend, batch, asks)])
    }
  }

  /** Decides what follows from the asks of a batch together, in their own transaction. */
  private conclude(batch: Batch, decide: (view: View) => void): Promise<void> {
    const step = () => {
      const layer = new Layer(batch)
      decide(layer)
      batch.adopt(layer)
    }
    const trial = [{ decide, unstoppable: new Set<string>() }]
    return untilLoaded(this.backend, step, () => needsOf(this.backend, batch, trial))
  }

  private async commit(batch: Batch): Promise<Event[] | 'again'> {
    if (batch.isEmpty) {
      await this.backend.rollback()
      return []
    }
    const { events, head } = seal(batch.drafts, batch.head, batch.instant.at)
    const { changes, forgets } = batch
    const done = await this.backend.commit({ changes, events, forgets, head })
    return done === 'again' ? 'again' : events
  }

  /** A command outlived its lease, or that was taken back: stop it, then sweep again. */
  private async stopOrphan(lease: Lease): Promise<void> {
    if (lease.group === null || this.stops.has(lease)) return
    const gone = await this.stops.stop(lease, lease.group)
    // If it cannot be written now, the next sweep finds it.
    if (gone) await this.write((view) => settleQuietly(view, lease, [])).catch(() => undefined)
  }
}
