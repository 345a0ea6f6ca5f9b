import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { DaemonKeeper } from './daemon.ts'
import { after } from './history.ts'
import { AGENT, type Proc, SDK } from './processes.ts'
import type { Orders } from './rig_agent.ts'
import type { Scene } from './scene.ts'

type How = Pick<Orders, 'connect' | 'door' | 'named' | 'mode'>

export interface ClientPlan {
  agent: string
  mode: Orders['mode']
  /** `token`: over HTTP through a relay; `local`: as a program of this login; `embedded`: none. */
  door: 'token' | 'local' | 'embedded'
  daemon: DaemonKeeper
  hasQueue: boolean
  falls: number
}

/** Keeps one agent alive: whenever its process ends, the next life of it begins. */
export class ClientKeeper {
  proc: Proc | undefined
  private lives = 0
  private secret = ''

  constructor(
    private readonly scene: Scene,
    readonly plan: ClientPlan,
  ) {}

  async keep(until: string): Promise<void> {
    while (!this.scene.isOver) {
      await this.scene.powered
      this.lives += 1
      const who = `${this.plan.agent}.${this.lives}`
      const orders: Orders = {
        who,
        agent: this.plan.agent,
        calls: join(this.scene.calls, `${who}.calls`),
        sdk: SDK,
        ...this.how(),
        seed: this.scene.random.below(2 ** 31),
        locks: 4,
        hasQueue: this.plan.hasQueue,
        falls: this.plan.falls,
        until,
      }
      const role = orders.door
      this.proc = this.scene.spawn(who, role, [AGENT, JSON.stringify(orders)], this.env())
      const { code, by } = await this.proc.ended
      this.scene.ended(this.proc, by)
      if (by === null && code !== 0) {
        this.scene.note('client ended', `${who} ${code} ${this.proc.err.slice(-500)}`)
        await after(200)
      }
    }
  }

  private env() {
    return { ...this.scene.env, LEASEHOLD_DIR: this.plan.daemon.state }
  }

  private how(): How {
    const { door, daemon, agent, mode } = this.plan
    const dir = daemon.state
    if (door === 'token') {
      const url = `http://127.0.0.1:${daemon.relay.port}`
      const connect = { url, token: this.secret, retry_seconds: 4 }
      return { connect, door: 'sdk', named: false, mode }
    }
    const connect = { dir, agent, retry_seconds: 4 }
    if (door === 'local') return { connect, door: 'sdk', named: true, mode }
    return { connect: { ...connect, embedded: true }, door: 'embedded', named: true, mode }
  }

  /** An agent that comes over HTTP needs a token, made before anything goes wrong. */
  async prepare(): Promise<void> {
    if (this.plan.door !== 'token') return
    this.secret = `lh_${randomBytes(32).toString('hex')}`
    const secret_hash = createHash('sha256').update(this.secret).digest('hex')
    const asked = { secret_hash, role: 'agent', for_agent: this.plan.agent }
    const { status, json } = await this.plan.daemon.ask('token.create', asked)
    if (status !== 200) throw new Error(`no token: ${JSON.stringify(json)}`)
  }
}
