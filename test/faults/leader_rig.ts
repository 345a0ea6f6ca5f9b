import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { Running, until } from '../support/processes.ts'
import type { Mood } from '../../lab/rig/relay.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/test/leader_participant.mjs', import.meta.url))

// oxlint-disable-next-line typescript/no-explicit-any -- what a program printed has any shape
type Json = any

export interface Deed {
  did: 'made' | 'done' | 'held'
  told_ms: number
  title?: string
  task?: string
  name?: string
  fence?: number
  code?: string
  renewed?: string
  released?: string
  answer?: Json
}

/** A process that leads or follows, and what it has said. */
export class Participant {
  readonly running: Running
  readonly deeds: Deed[] = []
  private readonly answers = new Map<number, (said: Json) => void>()
  private last = 0
  private isReady = false

  constructor(url: string, name: string, env: Record<string, string> = {}) {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { PATH: process.env['PATH'], URL: url, NAME: name, ...env },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    this.running = new Running(child, undefined)
    child.stderr.pipe(process.stderr)
    createInterface(child.stdout).on('line', (line) => this.hear(line))
  }

  private hear(line: string): void {
    const said: Json = JSON.parse(line)
    if (said.ready) this.isReady = true
    if (said.did) this.deeds.push({ ...said, told_ms: performance.now() })
    this.answers.get(said.id)?.(said)
  }

  async ready(): Promise<this> {
    await until(`a participant is ready ${this.running.err}`, () => this.isReady)
    return this
  }

  order(order: object): Promise<Json> {
    const id = (this.last += 1)
    return new Promise((resolve) => {
      this.answers.set(id, resolve)
      this.running.child.stdin!.write(`${JSON.stringify({ id, ...order })}\n`)
    })
  }

  status(): Promise<{ isLeading: boolean; isLed: boolean; asks: number }> {
    return this.order({})
  }

  ask(operation: string, input: object, agent = 'ada'): Promise<Json> {
    return this.order({ operation, input, agent })
  }

  relay(to: 'database' | 'followers', mood: Mood, reset = false): Promise<Json> {
    return this.order({ to, mood, reset })
  }

  /** Ends it in good order. */
  async end(): Promise<void> {
    this.running.child.stdin!.end()
    await this.running.ended
  }
}

/** Participants of one store under load, of whom one leads. Whoever is killed is replaced. */
export class Company {
  readonly all: Participant[] = []
  private readonly gone: Participant[] = []
  private made = 0

  constructor(
    private readonly url: string,
    private readonly env: Record<string, string>,
  ) {}

  async add(count = 1, more: Record<string, string> = {}): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const name = `p${(this.made += 1)}`
      const made = await new Participant(this.url, name, { ...this.env, ...more }).ready()
      this.all.push(made)
      await made.order({ load: CALLERS })
    }
  }

  /** The one that leads, when the others have found it. */
  leader(): Promise<Participant> {
    let last = ''
    return until('one leads and the others follow', async () => {
      const all = await Promise.all(this.all.map(async (one) => ({ one, ...(await one.status()) })))
      last = JSON.stringify(
        all.map(({ one: { running }, ...rest }) => ({ ...rest, pid: running.pid })),
      )
      const leaders = all.filter(({ isLeading }) => isLeading)
      const isWhole = all.every(({ isLeading, isLed }) => isLeading !== isLed)
      return leaders.length === 1 && isWhole && leaders[0]!.one
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${last}`)
    })
  }

  remove(one: Participant): void {
    this.all.splice(this.all.indexOf(one), 1)
    this.gone.push(one)
  }

  /** All that anybody was told, in the order of telling. */
  deeds(): Deed[] {
    const all = [...this.all, ...this.gone].flatMap(({ deeds }) => deeds)
    return all.toSorted((a, b) => a.told_ms - b.told_ms)
  }

  /** Effects that are told in a second now, while one leads. */
  async rate(): Promise<number> {
    const told = () => this.all.reduce((sum, { deeds }) => sum + deeds.length, 0)
    const [before, since_ms] = [told(), performance.now()]
    await until('effects are told', () => told() - before >= COUNTED)
    return Math.round(((told() - before) / (performance.now() - since_ms)) * 1000)
  }

  /** The longest time since then in which nobody but `one` was told of an effect. */
  silenceBut(one: Participant, since_ms: number): number {
    const others = this.all.filter((each) => each !== one).flatMap(({ deeds }) => deeds)
    const told = others.map(({ told_ms }) => told_ms).filter((ms) => ms > since_ms)
    const times = [since_ms, ...told.toSorted((a, b) => a - b), performance.now()]
    return Math.max(...times.slice(1).map((ms, i) => ms - times[i]!))
  }

  async end(): Promise<void> {
    await Promise.all(this.all.map((each) => each.order({ end: true })))
    for (const each of this.all) await each.end()
  }
}

/** Of each participant; enough that asks are always under way. */
const CALLERS = 8

/** Effects by which a rate is told. */
const COUNTED = 500
