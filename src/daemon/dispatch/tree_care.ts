import { setTimeout as after } from 'node:timers/promises'
import { seen } from '../../core/queue/worktree.ts'
import type { Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import type { Config } from '../config/config.ts'
import { placeIn } from '../program.ts'
import { type KeeperSpec, rulesIn, runKeeper } from '../worktrees/keeper.ts'
import { TurnsByLine } from '../turns.ts'

/** Age and room are looked at this often; what a dead run left, as soon as it is known. */
const KEEP_MS = 3600_000
const RETRY_MS = 5_000
/** What a daemon that stops waits for a keeper. */
const GRACE_MS = 5_000

/**
 * Sees to the worktrees of this host whose runs are over: keepers save what dead runs left, clear
 * away what was half made, and remove what was kept long enough.
 */
export class TreeCare {
  private readonly lines = new TurnsByLine()
  private timer: NodeJS.Timeout | undefined
  private retry: NodeJS.Timeout | undefined
  private active = false

  constructor(
    private readonly store: Store,
    private readonly options: {
      place: Place
      env: NodeJS.ProcessEnv
      say: (sentence: string) => void
      config: () => Config
    },
  ) {}

  begin(): void {
    this.active = true
    this.timer = setInterval(() => this.look(true), KEEP_MS).unref()
    this.look(true)
  }

  /** A keeper in whose repository git hangs is left to itself: its locks are its own. */
  async end(): Promise<void> {
    this.active = false
    clearInterval(this.timer)
    clearTimeout(this.retry)
    const late = after(GRACE_MS, undefined, { ref: false })
    await Promise.race([this.lines.over(), late])
  }

  /** A run may have ended without its runner. `all`: also those that are at rest. */
  look(all = false): void {
    if (!this.active || !this.store.isDatabase) return
    this.lines.serve(null, String(all), () => this.care(all).catch((error) => this.fail(error)))
  }

  private async care(all: boolean): Promise<void> {
    if (!this.active) return
    for (const repository of await this.repositories(all)) {
      // Each by itself: one that cannot be kept keeps nobody from seeing to the others.
      const keep = () => this.keep(repository).catch((error) => this.fail(error))
      this.lines.serve(repository, '', keep)
    }
  }

  private async keep(repository: string): Promise<void> {
    if (!this.active) return
    const said = await runKeeper(this.specOf(repository), this.options.env)
    if (said.refused) throw new Error(said.refused.message)
  }

  private fail(error: unknown): void {
    this.options.say(`worktrees have to wait: ${(error as Error).message}`)
    clearTimeout(this.retry)
    if (this.active) this.retry = setTimeout(() => this.look(true), RETRY_MS).unref()
  }

  /** Those of this host in which something is left to do. */
  private async repositories(all: boolean): Promise<Set<string>> {
    const trees = await this.store.read((view) =>
      [...view.scan('worktrees', '')].map((each) => seen(view, each)),
    )
    const host = this.store.host()
    const here = trees.filter((each) => each.host === host && each.is_over)
    const due = all ? here : here.filter(({ state }) => state !== 'left')
    return new Set(due.map(({ repository }) => repository))
  }

  private specOf(repository: string): KeeperSpec {
    const { place, config } = this.options
    const where = { place: placeIn(place), host: this.store.host(), repository }
    return { ...where, rules: rulesIn(config()), want: 'settle', id: null }
  }
}
