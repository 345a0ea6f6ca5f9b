import {
  type Memory,
  type MemoryVersion,
  STRATEGIES,
  type Strategy,
} from '../../src/core/schema/memory.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, FaultyBackend, MachineSim, temporaryFolder } from '../support/helpers.ts'
import { memoryFaults } from '../support/memory_check.ts'
import { MemoryVerbs } from '../support/memory_verbs.ts'
import { BACKENDS, type StoreName } from './backends.ts'
import { mustHold } from './broken.ts'
import { type Look, lookAt } from './queue_look.ts'
import { Random } from './random.ts'

const KEYS = ['a', 'b', 'c']
const SCOPES = ['global', 'project:web']
/** Steps between two looks at everything, which take longer than the steps. */
const LOOK_EVERY = 5
const AGENTS = ['ada', 'ada/sub', 'bob', 'cyd', 'dan']

/** What an agent has read of a note, perhaps long ago. */
interface ReadNote {
  version: number
  content: string
}

/**
 * Agents who write notes on what they read some time ago, lose replies and settle conflicts, over
 * the production store and rules. Throws `Broken` (S9) when what somebody wrote was overwritten by
 * one who had not seen it.
 */
export async function simulateMemory(plan: {
  seed: number
  steps: number
  store: StoreName
}): Promise<Map<string, number>> {
  const world = new MemoryWorld(plan.seed, plan.store)
  try {
    for (let step = 1; step <= plan.steps; step += 1) {
      await world.step()
      if (step % LOOK_EVERY === 0 || step === plan.steps) await world.look()
    }
  } catch (error) {
    if (error instanceof Error) error.message += ` (seed ${plan.seed} on ${plan.store})`
    throw error
  } finally {
    await world.close()
  }
  return world.counts
}

class MemoryWorld {
  readonly counts = new Map<string, number>()
  private readonly random: Random
  private readonly machine = new MachineSim()
  private readonly backends: FaultyBackend[]
  private readonly stores: Store[]
  private readonly read = new Map<string, ReadNote>()
  /** Of every content that was ever asked to be written: on which versions. */
  private readonly asked = new Map<string, Set<number>>()
  /** Versions whose writing was acknowledged, with their content. */
  private readonly known = new Map<string, string>()
  private made = 0

  constructor(seed: number, store: StoreName) {
    this.random = new Random(seed)
    const dir = temporaryFolder()
    this.backends = [0, 1].map(() => new FaultyBackend(BACKENDS[store](dir)))
    this.stores = this.backends.map((backend) => new Store(backend, this.machine))
  }

  async close(): Promise<void> {
    for (const store of this.stores) await store.close()
  }

  async step(): Promise<void> {
    const { random } = this
    const writer = random.below(2)
    const { faults } = this.backends[writer]!
    faults.length = 0
    if (random.chance(0.1)) faults.push(random.pick(['lost_reply', 'fail', 'again'] as const))
    const memory = new MemoryVerbs(this.stores[writer]!)
    await Promise.all(Array.from({ length: 1 + random.below(4) }, () => this.act(memory)))
    this.machine.advance(random.chance(0.05) ? 40_000 : random.below(500))
  }

  async look(): Promise<void> {
    await this.backends[0]!.lookOnce((base) => this.judge(lookAt(base)))
  }

  private async act(memory: MemoryVerbs): Promise<void> {
    const { random } = this
    const [agent, key, scope] = [random.pick(AGENTS), random.pick(KEYS), random.pick(SCOPES)]
    const caller = callerOf(agent)
    const place = `${agent} ${scope} ${key}`
    const chance = random.below(100)
    if (chance < 55) return this.put(memory, agent, key, scope)
    if (chance < 75) {
      const texts = await memory.texts(key, scope).catch(() => [])
      const note = await memory.memory(key, scope)
      const version = note?.heads.at(-1)
      if (version) this.read.set(place, { version, content: texts.at(-1) ?? '' })
      return undefined
    }
    if (chance < 82) {
      const based_on = this.read.get(place)?.version
      return this.count('delete', memory.delete(key, caller, { scope, based_on }))
    }
    if (chance < 94) return this.resolve(memory, agent, key, scope)
    if (chance < 97) {
      return this.count('prune', memory.prune({ history: random.chance(0.5) }, caller))
    }
    const strategies: Record<string, Strategy> = { 'project:*': random.pick(STRATEGIES) }
    return this.count('settings', memory.settings({ strategies }))
  }

  private async put(memory: MemoryVerbs, agent: string, key: string, scope: string) {
    const { random } = this
    const seen = this.read.get(`${agent} ${scope} ${key}`)
    const again = seen !== undefined && random.chance(0.1)
    const content = again ? seen.content : `${agent} ${(this.made += 1)}\nx\n${random.below(3)}`
    const based_on = random.chance(0.7) ? seen?.version : undefined
    const bases = this.asked.get(content) ?? new Set()
    this.asked.set(content, based_on === undefined ? bases : bases.add(based_on))
    const ttl_ms = random.chance(0.1) ? 20_000 : undefined
    const confidence = random.chance(0.3) ? random.below(10) / 10 : undefined
    const asked = memory.put(key, content, callerOf(agent), {
      ...{ scope, based_on, ttl_ms, confidence },
    })
    return this.count('put', asked, ({ version, written, conflict }) => {
      const kind = conflict ? conflict.status : written ? 'clean' : 'equal'
      this.tally(`put ${kind}`)
      if (version.kind === 'put') this.known.set(version.id, content)
      this.read.set(`${agent} ${scope} ${key}`, { version: version.version, content })
    })
  }

  private async resolve(memory: MemoryVerbs, agent: string, key: string, scope: string) {
    const { random } = this
    const [conflict] = await memory.open(key, scope)
    if (!conflict) return undefined
    const how = random.pick([
      { choose: 'ours' as const },
      { choose: 'theirs' as const },
      { content: `${agent} settled ${(this.made += 1)}`, supersede: false },
    ])
    return this.count('resolve', memory.resolve(conflict.id, how, callerOf(agent)))
  }

  private tally(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  private async count<T>(
    what: string,
    asked: Promise<T>,
    use: (value: T) => void = () => undefined,
  ): Promise<void> {
    try {
      use(await asked)
      this.tally(`${what} ok`)
    } catch (error) {
      const isUnknown = error instanceof Refusal && error.details['outcome'] === 'unknown'
      const isFault = error instanceof Error && /disk said no/.test(error.message)
      if (!isFault && !(error instanceof Refusal)) throw error
      this.tally(
        `${what} ${isUnknown ? 'unknown' : error instanceof Refusal ? error.code : 'fail'}`,
      )
    }
  }

  /** S9: rows agree, nothing acknowledged is gone, and nobody replaced what they had not seen. */
  private judge(look: Look): void {
    const faults = memoryFaults(look)
    mustHold('S9', faults.length === 0, () => faults.join('; '))
    for (const memory of look.rows<Memory>('memories_by_age', '')) {
      const versions = look.rows<MemoryVersion>('versions_of', memory.id)
      for (const version of versions) this.judgeVersion(look, version)
    }
    for (const [id, content] of this.known) {
      const row = look.get('memory_version', id)
      const text = look.get('memory_text', id)?.content
      // A note that was pruned is gone with all its versions, never with some of them.
      const isGone = !row && !this.hasOlder(look, id)
      const fits = isGone || (row !== undefined && (text === content || !row.kept))
      mustHold('S9', fits, () => `${JSON.stringify(id)} was acknowledged, and is lost`)
    }
  }

  /** Whether a note still has versions older than this one, which should then be there too. */
  private hasOlder(look: Look, id: string): boolean {
    const at = id.lastIndexOf('\n')
    const versions = look.rows<MemoryVersion>('versions_of', id.slice(0, at))
    return versions.some(({ version }) => version < Number(id.slice(at + 1)))
  }

  private judgeVersion(look: Look, version: MemoryVersion): void {
    if (version.kind !== 'put') return
    const content = look.get('memory_text', version.id)?.content
    const bases = content === undefined ? undefined : this.asked.get(content)
    if (!bases) return
    for (const number of version.parents) {
      const parent = look.get('memory_version', `${version.memory_id}\n${number}`)!
      const isOver = parent.expires_ms !== null && parent.expires_ms <= version.created_ms
      const isSame = parent.hash === version.hash
      const isOwn = parent.author === version.author && parent.kind === 'put'
      const isSeen = bases.has(number) || isSame || isOver || isOwn || parent.kind === 'delete'
      mustHold('S9', isSeen, () => {
        return `${JSON.stringify(version.id)} replaced version ${number} without having read it`
      })
    }
  }
}
