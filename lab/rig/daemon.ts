import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, nowMs } from './history.ts'
import { post, type Proc, type Reply, signal, until } from './processes.ts'
import { Relay } from './relay.ts'
import type { Scene } from './scene.ts'

const START_MS = 30_000

/** One daemon that is started again whenever it ends, and the relay through which agents ask it. */
export class DaemonKeeper {
  readonly relay: Relay
  port = 0
  proc: Proc | undefined
  lives = 0
  isStopped = false
  /** Another that wants to serve the same store. */
  rival: Proc | undefined
  private serving_since = Number.POSITIVE_INFINITY
  private isKept = true

  constructor(
    private readonly scene: Scene,
    readonly name: string,
    readonly state: string,
  ) {
    this.relay = new Relay(() => this.port)
  }

  /** Starts it, and goes on doing so; resolves when it serves for the first time. */
  async keep(): Promise<void> {
    await this.relay.listen()
    await this.start()
    void this.keepOn()
  }

  private async keepOn(): Promise<void> {
    while (this.isKept) {
      const { by, code } = await this.proc!.ended
      if (!this.isKept) return
      this.scene.down(this.name)
      this.scene.ended(this.proc!, by)
      // One that another has taken over from, or that lost its store, says so and ends.
      if (by === null) this.scene.note('daemon ended', `by itself: ${code}`)
      await this.start()
    }
  }

  private async start(): Promise<void> {
    while (this.isKept) {
      await this.scene.powered
      this.lives += 1
      this.serving_since = Number.POSITIVE_INFINITY
      const argv = [this.scene.bin, '--json', 'serve', '--port', '0']
      const env = { ...this.scene.env, LEASEHOLD_DIR: this.state }
      this.proc = this.scene.spawn(`${this.name}.${this.lives}`, 'daemon', argv, env)
      if (await this.isServing(this.proc)) return
      if (!this.proc.isOver) this.scene.kill(this.proc)
      await this.proc.ended
      await after(100)
    }
  }

  private async isServing(proc: Proc): Promise<boolean> {
    const url = () => /"url":"http:\/\/[^:]+:(\d+)"/.exec(proc.out)?.[1]
    await until(() => proc.isOver || url() !== undefined, START_MS, 10)
    if (proc.isOver || url() === undefined) return false
    this.port = Number(url())
    const ready = () => post(this.port, '/readyz').then(({ status }) => status === 200)
    const isReady = await until(() => proc.isOver || ready().catch(() => false), START_MS, 10)
    if (!isReady || proc.isOver) return false
    this.scene.up(this.name)
    this.serving_since = nowMs()
    return true
  }

  get secret(): string {
    return readFileSync(join(this.state, 'admin.token'), 'utf8').trim()
  }

  async ask(operation: string, input: object): Promise<Reply> {
    return post(this.port, `/v1/${operation}`, this.secret, input)
  }

  /** Whether it runs, and has served for so long. */
  hasServed(ms: number): boolean {
    if (!this.proc || this.proc.isOver || this.isStopped) return false
    return nowMs() - this.serving_since >= ms
  }

  kill(): void {
    if (!this.hasServed(0)) return
    this.scene.down(this.name)
    this.scene.kill(this.proc!)
  }

  /** Kills it while it has a request in its hands. */
  killOnRequest(delay_ms: number): void {
    this.relay.onRequest = () => {
      this.relay.onRequest = undefined
      setTimeout(() => this.kill(), delay_ms)
    }
  }

  /** Stops it for so long, then lets it go on. */
  async pause(ms: number): Promise<void> {
    if (!this.hasServed(0)) return
    this.isStopped = true
    const proc = this.proc!
    await this.scene.pause(proc.pid, proc.who, 'daemon', ms)
    this.isStopped = false
  }

  async end(): Promise<void> {
    this.isKept = false
    this.relay.close()
    if (!this.proc || this.proc.isOver) return
    signal(this.proc.pid, 'SIGCONT')
    signal(this.proc.pid, 'SIGTERM')
    const begun = nowMs()
    if (!(await until(() => this.proc!.isOver, 15_000))) {
      this.scene.violate('a daemon stops when asked', `${this.name} did not end in 15 s`)
      signal(this.proc.pid, 'SIGKILL')
    }
    this.scene.note('daemon stopped', `${Math.round(nowMs() - begun)} ms`)
    await this.proc.ended
  }
}
