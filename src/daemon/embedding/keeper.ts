import { adoptProvider, beginNotes, type Duty, nextDue } from '../../core/memory/background.ts'
import { type Event, nounOf } from '../../core/event.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import { type Config, readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { Elected } from '../elected.ts'
import { Role } from '../role.ts'
import { WorkRounds } from '../turns.ts'
import { step } from '../../machine/test_build.ts'
import { IndexedMeaning } from './meaning.ts'
import { openProvider } from './providers.ts'
import { type Desk, embedNotes, findDuplicates } from './read_notes.ts'

/** How long an end waits for what cannot be given up at once. */
const END_MS = 3_000
const OPEN_AGAIN_MS = 30_000

const soon = () => new Promise<void>((resolve) => void setTimeout(resolve, END_MS).unref())

/** How many are begun with at once: what a crash makes to be done again. */
const NOTES_MAX = 16
/** After trouble of the store or the provider; a failure of one note has a pause of its own. */
const RETRY_MS = 5_000

/** So long after the last note it is quiet; and so long at most is waited for that. */
const QUIET_MS = 100
const GIVE_WAY_MS = 1_000

const ROLE = 'leasehold:memory'
/** Changes that leave something to be done behind them. */
const leaves = (event: Event) => nounOf(event) === 'memory' && event.type !== 'memory.embedded'

export interface KeeperOptions {
  place: Place
  env: NodeJS.ProcessEnv
  say: (sentence: string) => void
  /** Opens what is configured; tests bring a model from elsewhere. */
  open?: typeof openProvider
}

/**
 * Does what is left to do behind notes: embeds them, and finds duplicates. One per store, by a lock
 * of its own; all others only search. It acts on events, and on the clock when something has to
 * wait. It may die at any time: what it had begun is done by the next one.
 */
export class NoteKeeper {
  private readonly role: Role
  private readonly elected: Elected
  private config: Config
  private meaning: IndexedMeaning | undefined
  private active = false
  private isOpen = false
  private isElecting = false
  private heard_ms = Number.NEGATIVE_INFINITY
  private isPaused = false
  private opening: Promise<void> | undefined
  private readonly rounds = new WorkRounds(
    () => this.isWorking,
    () => this.work(),
  )
  private stops: (() => void)[] = []

  constructor(
    private readonly store: Store,
    private readonly options: KeeperOptions,
  ) {
    this.role = new Role(store, ROLE, 'memory')
    const duty = { begin: () => this.beginDuty(), end: () => this.endDuty() }
    this.elected = new Elected(store, this.role, duty, options.say)
    this.config = readConfig(folderOf(options.place), options.env)
  }

  /** Searches by meaning from now on, and works as soon as no other process does. */
  async start(): Promise<void> {
    const { place, env } = this.options
    this.isOpen = true
    this.stops = [
      this.store.onCommit((events) => this.hear(events)),
      watchConfig(folderOf(place), env, {
        changed: (config) => {
          this.change(config).catch((error: Error) => this.options.say(error.message))
        },
        failed: () => undefined,
      }),
    ]
    this.openSoon()
    await this.elect()
  }

  async stop(): Promise<void> {
    this.isOpen = false
    for (const stop of this.stops) stop()
    // What is being embedded is given up: the next keeper does it.
    await this.closeMeaning()
    await this.elected.stop()
  }

  private beginDuty(): Promise<void> {
    this.active = true
    this.rounds.wake()
    return Promise.resolve()
  }

  private async endDuty(): Promise<void> {
    this.active = false
    await Promise.race([this.rounds.over(), soon()])
  }

  private openMeaning(): Promise<void> {
    return (this.opening ??= this.openProvider().finally(() => (this.opening = undefined)))
  }

  private async openProvider(): Promise<void> {
    if (this.meaning) return
    const { config } = this
    const { env, open = openProvider } = this.options
    const provider = await open(config, env)
    if (!provider) return
    if (!this.isOpen || this.config !== config) return provider.close()
    this.meaning = new IndexedMeaning(this.store, provider)
    this.store.meaning = this.meaning
  }

  /** In the background: an endpoint may take its time, or be away for a while. */
  private openSoon(): void {
    void this.openMeaning().catch((error: Error) => {
      this.options.say(`embeddings: ${error.message}`)
      setTimeout(() => this.isOpen && this.openSoon(), OPEN_AGAIN_MS).unref()
    })
  }

  private async closeMeaning(): Promise<void> {
    const { meaning } = this
    meaning?.stop()
    this.store.meaning = undefined
    this.meaning = undefined
    await meaning?.model.close()
  }

  /** Another provider: its vectors are made behind the scenes, and found as they come. */
  private async change(config: Config): Promise<void> {
    const before = JSON.stringify(this.config.memory)
    this.config = config
    if (JSON.stringify(config.memory) === before) return
    this.isPaused = true
    await this.closeMeaning()
    await this.rounds.over()
    this.isPaused = false
    this.openSoon()
    await this.elect()
    this.rounds.wake()
  }

  /** Where notes are not embedded there is nothing to be elected for. */
  private async elect(): Promise<void> {
    if (this.isElecting || this.config.memory.embeddings.provider === 'off') return
    this.isElecting = true
    try {
      await this.elected.startOrStandBy()
    } catch (error) {
      this.isElecting = false
      this.options.say(`notes are not embedded yet: ${(error as Error).message}`)
      setTimeout(() => this.isOpen && void this.elect(), RETRY_MS).unref()
    }
  }

  private hear(events: Event[]): void {
    if (!events.some(leaves)) return
    this.heard_ms = performance.now()
    this.rounds.wake()
  }

  private async work(): Promise<void> {
    try {
      await this.openMeaning()
      const { meaning } = this
      if (!meaning) return
      await this.store.write((view) => adoptProvider(view, meaning.model, this.duty()))
      while (this.isWorking && (await this.next(meaning)));
      const due = await this.store.read((view) => {
        const at = nextDue(view)
        return at === null ? null : Math.max(0, at - view.now)
      })
      if (due !== null) this.rounds.wakeIn(due)
    } catch (error) {
      if (!this.isWorking) return
      this.options.say(`what is behind notes has to wait: ${(error as Error).message}`)
      this.rounds.wakeIn(RETRY_MS)
    }
  }

  private get isWorking(): boolean {
    return this.active && !this.isPaused
  }

  private duty(): Duty {
    return { name: this.role.name, fence: this.role.fence, caller: this.role.caller }
  }

  /** Writers of notes come first: while they write, only a batch a second is embedded. */
  private async giveWay(): Promise<void> {
    const until_ms = performance.now() + GIVE_WAY_MS
    for (;;) {
      const now = performance.now()
      const wait_ms = Math.min(this.heard_ms + QUIET_MS, until_ms) - now
      if (wait_ms <= 0 || !this.isWorking) return
      await new Promise((resolve) => void setTimeout(resolve, wait_ms))
    }
  }

  /** Reads some of the notes that are due. False when none is. */
  private async next(meaning: IndexedMeaning): Promise<boolean> {
    step('worker:idle')
    await this.giveWay()
    const { store } = this
    const ids = await store.write((view) => beginNotes(view, NOTES_MAX, this.duty()))
    if (ids.length === 0) return false
    step('notes:begun')
    const isActive = () => this.isWorking
    const desk: Desk = { store, meaning, duty: () => this.duty(), isActive }
    await findDuplicates(desk, await embedNotes(desk, ids))
    step('notes:done')
    return true
  }
}
