import { operationNamed, type Registered } from '../../src/operations/registry.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { until } from '../support/processes.ts'
import { directly, type Door, type Opened, type Outcome } from './parity_doors.ts'
import type { Json } from './serving.ts'

export type Name = Registered['name']

/** What was asked and what came of it; undefined where the door could not be asked. */
export interface Step {
  asked: string
  name: Name
  input: Json
  outcome: Outcome | undefined
}

/** Which steps a door is asked for, by their places in the script. */
export type Choice = ReadonlySet<number>

/** Lists stand in the order of time: no two calls are of one millisecond, however fast a door. */
function passMillisecond(): void {
  const from_ms = Date.now()
  let now_ms = from_ms
  while (now_ms === from_ms) now_ms = Date.now()
}

/** Plays the same calls through a door. What the door cannot say is done without it. */
export class Player {
  readonly steps: Step[] = []
  private readonly door: Door
  private readonly direct: Door
  private readonly store: Store
  private readonly choice: Choice | undefined

  /** Steps that are not chosen are done without the door as well; all are, unless told. */
  constructor({ door, store }: Opened, choice?: Choice) {
    this.choice = choice
    this.door = door
    this.direct = directly(store)
    this.store = store
  }

  /** Asks, keeps the outcome, and returns the answer: later calls need its fences and ids. */
  async ask(name: Name, agent: string, input: Json = {}): Promise<Json> {
    passMillisecond()
    const operation = operationNamed.get(name)!
    const asked = `${agent} ${name} ${plainInput(input).slice(0, 120)}`
    const step: Step = { asked, name, input, outcome: undefined }
    const at = this.steps.push(step) - 1
    const isDue = this.choice?.has(at) ?? true
    const through = isDue ? this.door.ask(operation, agent, input) : undefined
    const outcome = (await through) ?? (await this.direct.ask(operation, agent, input)!)
    if (through) step.outcome = outcome
    return 'answer' in outcome ? outcome.answer : outcome.refused
  }

  /** Two notes were found to be alike, as a server with a model would record it. */
  async found(id: string, a: string, b: string): Promise<void> {
    const row = { id, a: `global\n${a}`, b: `global\n${b}`, similarity: 0.9, label: null }
    const open = { status: 'open' as const, action: null, resolved_by: null, resolved_at: null }
    await this.store.write((view) => {
      view.put('duplicate', { ...row, ...open, found_at: view.at })
    })
  }

  /** The config.json of a host says how a project lands. */
  async lands(project: string): Promise<void> {
    await this.store.write((view) => {
      view.put('landing_rule', { project, onto: 'main', auto: false, checks: true })
    })
  }

  /** What the store says, past the door and past the script. */
  async look(name: Name, input: Json): Promise<Json> {
    const outcome = await this.direct.ask(operationNamed.get(name)!, 'ada', input)!
    return 'answer' in outcome ? outcome.answer : outcome.refused
  }

  /** Starts a call that will wait for `lock`, and goes on when it does. */
  async waits(
    lock: string,
    name: Name,
    agent: string,
    input: Json,
  ): Promise<{ got: Promise<Json> }> {
    const before = (await this.look('lock.status', { name: lock })).waiters.length
    const got = this.ask(name, agent, input)
    await until(`${agent} waits for ${lock}`, async () => {
      return (await this.look('lock.status', { name: lock })).waiters.length > before
    })
    // In an object: to await a promise of a promise is to await both.
    return { got }
  }
}

/** Without numbers that differ from store to store: one may be longer than another. */
const plainInput = (input: object) => JSON.stringify(input).replaceAll(/"fence":\d+/g, '')
