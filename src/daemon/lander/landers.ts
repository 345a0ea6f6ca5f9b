import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { sha256 } from '../../machine/digest.ts'
import { repositoryAt } from '../../machine/git.ts'
import { folderOf, type Place } from '../../stores/open.ts'
import type { Store } from '../../stores/writer/store.ts'
import { type Config, readConfig } from '../config/config.ts'
import { watchConfig } from '../config/watch.ts'
import { type LandedProject, Lander, type LanderOptions } from './lander.ts'

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

  constructor(
    private readonly store: Store,
    private readonly options: LandersOptions,
  ) {
    this.folder = folderOf(options.place)
  }

  async start(): Promise<void> {
    const { env, say } = this.options
    this.stopWatching = watchConfig(this.folder, env, {
      changed: (config) => void this.change(config).catch((error: Error) => say(error.message)),
      // The dispatcher tells what is wrong with it.
      failed: () => undefined,
    })
    await this.change(readConfig(this.folder, env))
  }

  async stop(): Promise<void> {
    this.stopWatching()
    await this.change(undefined)
  }

  private change(config: Config | undefined): Promise<void> {
    this.changing = this.changing.catch(() => undefined).then(() => this.serve(config))
    return this.changing
  }

  private async serve(config: Config | undefined): Promise<void> {
    const wanted = config ? await this.wantedBy(config) : []
    const serves = wanted.map(({ repository, projects }) => ({ repository, projects }))
    if (isDeepStrictEqual(serves, this.serves)) return
    this.serves = serves
    for (const lander of this.landers.splice(0)) await lander.stop()
    this.landers = wanted.map((each) => new Lander(this.store, each))
    for (const lander of this.landers) await lander.start()
  }

  private async wantedBy({ projects }: Config): Promise<LanderOptions[]> {
    const { env, say } = this.options
    const by = new Map<string, LanderOptions>()
    for (const [name, { path, land }] of Object.entries(projects)) {
      if (!land) continue
      try {
        const repository = await repositoryAt(path)
        const { common } = repository
        const all: LandedProject[] = by.get(common)?.projects ?? []
        all.push({ name, path, land })
        const folder = by.get(common)?.folder ?? this.treesOf(common)
        by.set(common, { repository, projects: all, folder, env, say })
      } catch (error) {
        say(`project ${name} cannot be landed: ${(error as Error).message}`)
      }
    }
    return [...by.values()]
  }

  /** Where the trees of a repository's lander are, beside the worktrees of runs. */
  private treesOf(common: string): string {
    const folder = join(this.folder, 'worktrees', 'landers', sha256(common).slice(0, 12))
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return realpathSync(folder)
  }
}
