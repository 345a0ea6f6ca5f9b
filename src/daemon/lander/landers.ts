import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { holdUpAll } from '../../core/landing/turn.ts'
import { sha256 } from '../../machine/digest.ts'
import { repositoryAt } from '../../machine/git.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import { type Config, readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { Lander, type LanderOptions } from './lander.ts'
import type { LandedProject } from './source.ts'

const AGAIN_MS = 10_000

interface LandersOptions {
  place: Place
  env: NodeJS.ProcessEnv
  say: (sentence: string) => void
}

/** The landers of a daemon: one for each repository whose projects land. */
export class Landers {
  private readonly folder: string
  private landers: Lander[] = []
  private serves: object = {}
  private changing: Promise<void> = Promise.resolve()
  private stopWatching = () => {}
  private forget = () => {}
  /** Projects that cannot be landed here, each with what is wrong: who waits for one is told. */
  private unfit = new Map<string, string>()
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly store: Store,
    private readonly options: LandersOptions,
  ) {
    this.folder = folderOf(options.place)
  }

  async start(): Promise<void> {
    const { env, say } = this.options
    const change = (config: Config) =>
      void this.change(config).catch((error: Error) => say(error.message))
    this.stopWatching = watchConfig(this.folder, env, {
      changed: change,
      // The dispatcher tells what is wrong with it.
      failed: () => undefined,
    })
    // What was wrong with a repository may have been mended: it had no commit yet, say.
    const lookAgain = () => change(readConfig(this.folder, env))
    this.forget = this.store.onCommit((events) => {
      if (this.unfit.size > 0 && events.some(({ type }) => type === 'landing.asked')) lookAgain()
    })
    this.timer = setInterval(() => this.unfit.size > 0 && lookAgain(), AGAIN_MS).unref()
    await this.change(readConfig(this.folder, env))
  }

  async stop(): Promise<void> {
    this.stopWatching()
    this.forget()
    clearInterval(this.timer)
    await this.change(undefined)
  }

  private change(config: Config | undefined): Promise<void> {
    this.changing = this.changing.catch(() => undefined).then(() => this.serve(config))
    return this.changing
  }

  private async serve(config: Config | undefined): Promise<void> {
    const wanted = config ? await this.wantedBy(config) : []
    for (const [project, why] of this.unfit) {
      await this.store.write((view) => holdUpAll(view, project, why))
    }
    const serves = wanted.map(({ repository, projects }) => ({ repository, projects }))
    if (isDeepStrictEqual(serves, this.serves)) return
    this.serves = serves
    // At the same time, and each by itself: one that fails keeps none of the others.
    const { say } = this.options
    const each = (work: (lander: Lander) => Promise<void>) =>
      Promise.all(this.landers.map((one) => work(one).catch((error: Error) => say(error.message))))
    await each((lander) => lander.stop())
    this.landers = wanted.map((one) => new Lander(this.store, one))
    await each((lander) => lander.start())
  }

  private async wantedBy({ projects }: Config): Promise<LanderOptions[]> {
    const { env, say } = this.options
    const by = new Map<string, LanderOptions>()
    const unfit = new Map<string, string>()
    for (const [name, { path, land, worktrees }] of Object.entries(projects)) {
      if (!land) continue
      try {
        const repository = await repositoryAt(path)
        const { common } = repository
        const all: LandedProject[] = by.get(common)?.projects ?? []
        all.push({ name, path, land, hasWorktrees: worktrees !== null })
        const folder = by.get(common)?.folder ?? this.treesOf(common)
        by.set(common, { repository, projects: all, folder, env, say })
      } catch (error) {
        unfit.set(name, (error as Error).message)
        const why = `project ${name} cannot be landed: ${(error as Error).message}`
        if (!this.unfit.has(name)) say(why)
      }
    }
    this.unfit = unfit
    return [...by.values()]
  }

  /** Where the trees of a repository's lander are: not among worktrees, which agents work in. */
  private treesOf(common: string): string {
    const folder = join(this.folder, 'landers', sha256(common).slice(0, 12))
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return realpathSync(folder)
  }
}
