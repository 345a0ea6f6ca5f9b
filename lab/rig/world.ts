import { closeSync, fsyncSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresServer, startPostgres } from '../../test/support/postgres_server.ts'
import { ClientKeeper, type ClientPlan } from './clients.ts'
import { CommandLine, type Direct, McpClient, Wrapper } from './commands.ts'
import type { Counts } from './counts.ts'
import { DaemonKeeper } from './daemon.ts'
import { Disk } from './disk.ts'
import { Finder } from './finding.ts'
import { judgeAnswers, judgeScene } from './final.ts'
import { after, Notes, nowMs } from './history.ts'
import { ALONE, isAlive, type Proc, signal, until } from './processes.ts'
import { Relay } from './relay.ts'
import { Scene } from './scene.ts'

export type Kind = 'sqlite' | 'file' | 'postgres'

export interface WorldPlan {
  name: string
  kind: Kind
  /** `small`: it fills up; `journaled`: its power is cut; `failing`: its writes fail (EIO). */
  disk?: 'small' | 'journaled' | 'failing'
  seed: number
  ms: number
  folder: string
  /** The promise that is broken on purpose. */
  plant?: string
}

const USERS = ['ada', 'ben', 'cho']
/** After this time without faults, everything that waits has been served. */
const DRAIN_MS = 60_000

/** So that it is still there when the power was away; the folder is synced with the file. */
function writeDurably(path: string, text: string): void {
  const fd = openSync(path, 'w', 0o600)
  writeSync(fd, text)
  fsyncSync(fd)
  closeSync(fd)
}

/** A store, the programs that use it, and what is done to them. */
export class World {
  readonly scene: Scene
  readonly daemons: DaemonKeeper[] = []
  readonly clients: ClientKeeper[] = []
  readonly wrappers: Wrapper[] = []
  readonly commands: CommandLine[] = []
  mcp!: McpClient
  finder!: Finder
  disk: Disk | undefined
  database: PostgresServer | undefined
  /** Between daemons and their database. */
  link: Relay | undefined
  readonly hasQueue: boolean
  private readonly until: string
  private readonly running: Promise<void>[] = []

  constructor(
    readonly plan: WorldPlan,
    counts: Counts,
  ) {
    mkdirSync(plan.folder, { recursive: true })
    this.scene = new Scene(plan.name, plan.folder, plan.seed, counts, plan.plant)
    this.until = join(plan.folder, 'until')
    this.hasQueue = plan.kind !== 'file'
  }

  /** Builds it up, lets it suffer by `harm`, lets it come to rest, and judges it. */
  async play(harm: (world: World, until_ms: number) => Promise<void>): Promise<void> {
    try {
      if (!(await this.build())) return
      await harm(this, nowMs() + this.plan.ms)
      await this.comeToEnd()
      if (this.disk?.hasGivenUp) return judgeAnswers(this.scene)
      await this.drain()
      await judgeScene(this.scene, this.direct().env, this.hasQueue)
    } catch (error) {
      this.scene.violate('the rig itself', `${(error as Error).stack}`)
    } finally {
      await this.close()
    }
  }

  /** All programs that the rig itself started and keeps. */
  readonly everybody = (): Proc[] => {
    const all = [...this.daemons, ...this.clients, ...this.wrappers, ...this.commands, this.mcp]
    const rivals = this.daemons.flatMap(({ rival }) => rival ?? [])
    return [...all.flatMap(({ proc }) => proc ?? []), ...rivals]
  }

  private async build(): Promise<boolean> {
    const { plan, scene } = this
    let base = plan.folder
    if (plan.disk) {
      const at = join(base, 'disk')
      const made = plan.disk === 'small' ? Disk.small(at, '24m') : Disk[plan.disk](at)
      if (typeof made === 'string') {
        scene.counts.skipped.set(`${plan.disk} disk`, made)
        return false
      }
      this.disk = made
      base = made.folder
    }
    if (plan.kind === 'postgres') await this.startDatabase()
    if (plan.kind === 'file') scene.env['LEASEHOLD_STORE'] = 'file:'
    for (let i = 0; i < (plan.kind === 'postgres' ? 2 : 1); i += 1) {
      const state = join(base, `state${i}`)
      mkdirSync(state, { mode: 0o700 })
      if (this.hasQueue) this.configure(state)
      this.daemons.push(new DaemonKeeper(scene, `daemon${i}`, state))
    }
    for (const daemon of this.daemons) await daemon.keep()
    await this.daemons[0]!.ask('task.create', {
      id: 'counter',
      title: 'counter',
      body: '0',
      assigned_to: 'nobody',
    })
    await this.populate()
    return true
  }

  private async startDatabase(): Promise<void> {
    const { disk } = this
    this.database = await startPostgres({ fsync: true, ...(disk && { folder: disk.folder }) })
    disk?.sync()
    const url = new URL(this.database.url)
    const port = Number(url.port)
    this.link = new Relay(() => port)
    url.port = String(await this.link.listen())
    url.searchParams.set('schema', 'rig')
    this.scene.env['LEASEHOLD_STORE'] = url.href
  }

  private configure(state: string): void {
    const config = {
      slots: { max: 3 },
      projects: { web: { path: this.plan.folder, agent: 'shell' } },
      agents: { shell: { env: { OUT: this.scene.out } } },
      runs: { ttl_seconds: 2, grace_seconds: 0.3 },
    }
    writeDurably(join(state, 'config.json'), JSON.stringify(config))
  }

  private async populate(): Promise<void> {
    const { scene, hasQueue } = this
    const daemonOf = (i: number) => this.daemons[i % this.daemons.length]!
    const plan = (agent: string, i: number, more: Partial<ClientPlan>): ClientPlan => ({
      agent,
      mode: 'mixed',
      door: 'token',
      daemon: daemonOf(i),
      hasQueue,
      falls: 0.08,
      ...more,
    })
    const plans = [
      plan('t0', 0, {}),
      plan('t1', 1, {}),
      plan('l0', 0, { door: 'local' }),
      plan('e0', 1, { door: 'embedded' }),
      plan('p0', 0, { mode: 'patient' }),
      plan('p1', 1, { mode: 'patient', door: 'local' }),
      plan('f0', 0, { mode: 'faller', door: 'local' }),
      plan('f1', 1, { mode: 'faller' }),
    ]
    for (const each of plans) this.clients.push(new ClientKeeper(scene, each))
    this.commands.push(new CommandLine(scene, 'c0', daemonOf(0), undefined))
    this.commands.push(new CommandLine(scene, 'd0', daemonOf(0), this.direct()))
    this.wrappers.push(new Wrapper(scene, 'w0', daemonOf(0)), new Wrapper(scene, 'w1', daemonOf(1)))
    this.mcp = new McpClient(scene, 'm0', daemonOf(0))
    this.finder = new Finder(scene)
    // Before anything goes wrong: it needs a daemon that lives.
    await Promise.all(this.clients.map((client) => client.prepare()))
    for (const client of this.clients) this.running.push(client.keep(this.until))
    for (const each of [...this.commands, ...this.wrappers, this.mcp]) {
      this.running.push(each.keep())
    }
    if (hasQueue) this.running.push(this.enqueue())
    void scene.feelPulse()
    void scene.awaken(() => 2_300 + scene.random.below(600))
  }

  /** Adds to the queues of a few users while the faults last, so that some always wait. */
  private async enqueue(): Promise<void> {
    const { scene } = this
    const notes = new Notes(join(scene.calls, 'enqueuer.calls'))
    for (let n = 0; !scene.isOver; n += 1) {
      const user = scene.random.pick(USERS)
      const [mark, id] = [`queued ${n}`, `q${n}`]
      const seconds = scene.random.pick([0.05, 0.1, 0.5])
      const child = scene.random.chance(0.2) ? 'child' : ''
      const begin = `set -- ${user} "$LEASEHOLD_RUN" ${seconds} ${child}`
      const script = `${begin}; . ${scene.out}/witness.sh`
      const input = { id, title: mark, prompt: script, project: 'web', user, retries: 50 }
      for (let told = false; !told && !scene.isOver;) {
        const asked = { op: 'queue.add', request: mark, agent: 'rig', door: 'http', mark }
        const end = notes.ask(asked)
        const asking = scene.random.pick(this.daemons).ask('queue.add', {
          ...input,
          request_id: mark,
          agent: 'rig',
        })
        const reply = await asking.catch(() => undefined)
        told = reply?.status === 200
        end(told ? { outcome: 'ok', task: id } : { outcome: 'unknown' })
        if (!told) {
          if (reply && reply.status !== 503) scene.note('enqueue', JSON.stringify(reply.json))
          await after(200)
        }
      }
      await after(150 + scene.random.below(500))
    }
    notes.close()
  }

  /** The same store for a command that reaches no daemon. */
  private direct(): Direct {
    const { env } = this.scene
    if (this.plan.kind !== 'postgres') {
      return { env: { ...env, LEASEHOLD_DIR: this.daemons[0]!.state }, before: ALONE }
    }
    const dir = join(this.plan.folder, 'direct')
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    return { env: { ...env, LEASEHOLD_DIR: dir }, before: [] }
  }

  /** No more faults: everybody comes to an end. */
  private async comeToEnd(): Promise<void> {
    const { scene } = this
    writeFileSync(this.until, '')
    scene.isOver = true
    for (const { pid } of this.finder.all()) signal(pid, 'SIGCONT')
    await Promise.race([Promise.all(this.running), after(DRAIN_MS)])
    const stuck = this.clients.filter(({ proc }) => proc && !proc.isOver)
    for (const { proc } of stuck) scene.violate('everybody is served', `${proc!.who} did not end`)
  }

  /** What waits is served. */
  private async drain(): Promise<void> {
    const { scene } = this
    if (!this.hasQueue) return
    let status: unknown
    const isEmpty = async () => {
      const { json } = await this.daemons[0]!.ask('queue.status', {})
      status = json
      return (
        json.pending.total === 0 && json.active.slots_used === 0 && json.user_locks.active === 0
      )
    }
    if (await until(() => isEmpty().catch(() => false), DRAIN_MS, 250)) return
    scene.violate('the queue drains', JSON.stringify(status))
  }

  private async close(): Promise<void> {
    const { scene } = this
    scene.isOver = true
    writeFileSync(this.until, '')
    const left = this.finder?.all() ?? []
    for (const daemon of this.daemons) await daemon.end()
    for (const { pid } of left) if (isAlive(pid)) signal(pid, 'SIGKILL')
    await scene.end()
    for (const { pid } of this.finder?.all() ?? []) signal(pid, 'SIGKILL')
    this.link?.close()
    await this.database?.stop().catch((error: Error) => {
      scene.violate('the rig itself', `${error.stack}`)
    })
    this.disk?.close()
  }
}
