import type { Landing } from '../../src/core/schema/landing.ts'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { land, type Land } from '../../src/core/landing/land.ts'
import { settingKey } from '../../src/core/queue/host_settings.ts'
import { applySettings } from '../../src/core/queue/settings.ts'
import type { LandConfig } from '../../src/daemon/config/schema.ts'
import { Landers } from '../../src/daemon/lander/landers.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { gitIn, type GitRepo, gitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'

export const ada = callerOf('ada')

/** Red where a file `red` is there, and where two who may not be together both are. */
export const CHECK = ['/bin/sh', '-c', 'echo checking; test ! -e red && test ! -e bad-pair']

export type Said = Partial<LandConfig>

/** A repository with a store in it whose project `web` lands onto `main`. */
export class LandingScene {
  readonly repo: GitRepo
  readonly store
  readonly verbs: QueueVerbs
  readonly said: string[] = []

  constructor(
    said: Said = {},
    readonly top = join(temporaryFolder(), 'a repository'),
  ) {
    this.repo = gitRepo(top)
    mkdirSync(join(top, '.leasehold'), { mode: 0o700 })
    const landing = { onto: 'main', check: CHECK, ...said }
    const config = { projects: { web: { path: '.', agent: 'shell', land: landing } } }
    const place = placeOf({ LEASEHOLD_DIR: join(top, '.leasehold') }, top)
    this.store = openStore(place)
    this.verbs = new QueueVerbs(this.store)
    writeFileSync(join(top, '.leasehold', 'config.json'), JSON.stringify(config))
    onTestFinished(() => this.store.close())
  }

  async begin(said: { onto?: string | null | undefined; auto?: boolean } = {}): Promise<this> {
    const { onto = 'main', auto = true } = said
    await this.store.write((view) => {
      const key = (field: string) => settingKey('projects', 'web', 'land', field)
      const all = { [key('onto')]: onto, [key('checks')]: true, [key('auto')]: auto }
      applySettings(view, 'config.json', all)
    })
    return this
  }

  /** A lander that works until the end of the test, or until it is stopped. */
  async lander(env: Record<string, string> = {}): Promise<Landers> {
    const place = placeOf({ LEASEHOLD_DIR: join(this.top, '.leasehold') }, this.top)
    const trusted = { PATH: process.env['PATH'], LEASEHOLD_TRUST_CONFIG: 'yes', ...env }
    const say = (sentence: string) => void this.said.push(sentence)
    const landers = new Landers(this.store, { place, env: trusted, say })
    await landers.start()
    onTestFinished(() => landers.stop())
    return landers
  }

  /** A branch from where `main` is now, with these files; what is checked out stays. */
  branch(name: string, files: Record<string, string>, from = 'main'): string {
    const { repo } = this
    const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`
    const lines = Object.entries(files).map(([path, text]) => {
      return `M 100644 inline ${path}\n${data(text)}`
    })
    const who = 'Ada <ada@example.org> 1700000000 +0000'
    const head = `commit refs/heads/${name}\ncommitter ${who}\n${data(name)}`
    const input = `${head}from ${repo.head(from)}\n${lines.join('')}\n`
    execFileSync('git', ['fast-import', '--quiet', '--force'], { cwd: this.top, input })
    return repo.head(name)
  }

  ask(ask: Partial<Land> & { id: string }): Promise<Landing> {
    return this.store.write((view) => land(view, { project: 'web', ...ask }, ada))
  }

  landing(id: string): Promise<Landing> {
    return this.store.read((view) => view.get('landing', id)!)
  }

  /** The landing when it is over. */
  async ended({ id }: { id: string }): Promise<Landing> {
    await until(`landing ${id} is over: ${this.said.join('; ')}`, async () => {
      return (await this.landing(id)).ended_at !== null
    })
    return this.landing(id)
  }

  /** A bare repository that this one knows as `origin`, and that has its `main`. */
  origin(): string {
    const origin = join(temporaryFolder(), 'origin.git')
    gitIn('/', 'init', '--quiet', '--bare', '--initial-branch', 'main', origin)
    this.repo.git('remote', 'add', 'origin', origin)
    this.repo.git('push', '--quiet', 'origin', 'main')
    return origin
  }

  files(of = 'main'): string[] {
    return this.repo.git('ls-tree', '-r', '--name-only', of).split('\n')
  }
}
