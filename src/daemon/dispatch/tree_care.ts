import { seen } from '../../core/queue/worktree.ts'
import type { Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import type { Config } from '../config/config.ts'
import { type KeeperSpec, runKeeper } from '../worktrees/keeper.ts'
import { placeIn } from './start_runner.ts'

/** Age and room are looked at this often; what a dead run left, as soon as it is known. */
const KEEP_MS = 3600_000
const RETRY_MS = 5_000

/**
 * Sees to the worktrees of this host whose runs are over: keepers save what dead runs left, clear
 * away what was half made, and remove what was kept long enough.
 */
export class TreeCare {
  private caring: Promise<void> | undefined
  private again = false
  private timer: NodeJS.Timeout | undefined
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
    this.look(true)
  }

  async end(): Promise<void> {
    this.active = false
    clearTimeout(this.timer)
    await this.caring
  }

  /** A run may have ended without its runner. `all`: also those that are at rest. */
  look(all = false): void {
    if (!this.active || !this.store.isDatabase) return
    this.again = true
    this.caring ??= this.care(all).finally(() => (this.caring = undefined))
  }

  private async care(all: boolean): Promise<void> {
    let later_ms = KEEP_MS
    let isAll = all
    while (this.active && this.again) {
      this.again = false
      try {
        for (const repository of await this.repositories(isAll)) {
          const said = await runKeeper(this.specOf(repository), this.options.env)
          if (said.refused) throw new Error(said.refused.message)
        }
        isAll = false
      } catch (error) {
        this.options.say(`worktrees have to wait: ${(error as Error).message}`)
        later_ms = RETRY_MS
      }
    }
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.look(true), later_ms).unref()
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

/** How projects have their worktrees saved and kept. */
export function rulesIn({ projects }: Config): KeeperSpec['rules'] {
  const ruled = Object.entries(projects).flatMap(([name, { worktrees }]) =>
    worktrees ? [[name, { keep: worktrees.keep, salvage: worktrees.salvage }] as const] : [],
  )
  return Object.fromEntries(ruled)
}
