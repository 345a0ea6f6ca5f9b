import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { Running, until } from '../support/processes.ts'
import type { Mood } from './rig/relay.ts'

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
    createInterface(child.stdout).on('line', (line) => this.hear(line))
  }

  private hear(line: string): void {
    const said = JSON.parse(line) as Json
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
