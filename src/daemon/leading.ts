import { planted } from '../core/planted.ts'
import { operationNamed } from '../operations/registry.ts'
import type { Operation } from '../operations/operation.ts'
import { host } from '../machine/process.ts'
import { LeaderFollower } from '../reach/leader.ts'
import { WRITER } from '../reach/leader_wire.ts'
import type { Store } from '../stores/writer/store.ts'
import { Elected } from './elected.ts'
import { LeaderDoor } from './leader.ts'
import { Role } from './role.ts'

/** Shorter than that of other roles: while a dead leader has it, every process writes alone. */
const TTL_MS = 10_000

interface LeadingOptions {
  /** Where to listen; a port of 0 is any. */
  listen: () => { host: string; port: number }
  version: string
  say: (sentence: string) => void
  ttl_ms?: number
  operations?: ReadonlyMap<string, Operation>
}

/**
 * One process of a store leads: it takes the asks of the others. Each of them may, and follows
 * while another does.
 */
export class Leading {
  readonly follower: LeaderFollower
  private readonly elected: Elected
  private readonly role: Role
  private door: LeaderDoor | undefined

  constructor(
    private readonly store: Store,
    private readonly options: LeadingOptions,
  ) {
    const { ttl_ms = TTL_MS, say, version } = options
    this.follower = new LeaderFollower(store, version)
    this.role = new Role(store, WRITER, 'writer', ttl_ms)
    const duty = { begin: () => this.begin(), end: () => this.end() }
    this.elected = new Elected(store, this.role, duty, say)
  }

  get isLeading(): boolean {
    return this.door !== undefined
  }

  async start(): Promise<void> {
    this.store.leader = this.follower
    await this.elected.startOrStandBy()
  }

  /** Leads no more; what is asked here meanwhile may go to the next leader. */
  stop(): Promise<void> {
    return this.elected.stop()
  }

  private async begin(): Promise<void> {
    const { store, options, role } = this
    const { operations = operationNamed, version } = options
    const door = new LeaderDoor(store, (name) => operations.get(name))
    this.door = door
    const address = await door.listen(options.listen()).catch((error: Error) => {
      options.say(`other machines cannot reach this one: ${error.message}`)
      return door.listen({ host: '127.0.0.1', port: 0 })
    })
    store.leader = undefined
    this.follower.rest()
    const { secret } = door
    await store.leaders!.write({ fence: role.fence, address, secret, host, version })
  }

  private async end(): Promise<void> {
    if (planted('R37')) return
    const { store, door } = this
    this.door = undefined
    store.leader = this.follower
    this.follower.resume()
    // If it cannot be cleared, it leads to nobody.
    await store.leaders!.clear(this.role.fence).catch(() => undefined)
    await door?.close()
  }
}
