import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { DaemonKeeper } from './daemon.ts'
import { command, commandFrom } from './final.ts'
import { ALONE, type Env, until } from './processes.ts'
import type { Scene } from './scene.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- what a program printed has any shape
export type Json = any
/** A fault that is aimed at one thing, and what must not come of it. */
export interface AimedCase {
  name: string
  /** Of issue 13, where somebody outside found it. */
  item: string
  /** Says what is wrong; nothing, if all is well. `skip` tells why it cannot be shown here. */
  run(stage: Stage): Promise<string | undefined>
}

/** What a case plays on: a state folder, a daemon if it wants one, and commands. */
export class Stage {
  readonly state: string
  readonly env: Env
  readonly daemon: DaemonKeeper
  private readonly ending: (() => unknown)[] = []

  constructor(readonly scene: Scene) {
    this.state = join(scene.folder, 'state')
    fs.mkdirSync(this.state, { mode: 0o700 })
    this.env = { ...scene.env, LEASEHOLD_DIR: this.state }
    this.daemon = new DaemonKeeper(scene, 'daemon', this.state)
    this.finally(() => this.daemon.end())
  }

  cli(...args: string[]): Promise<Json> {
    return command(this.env, ...args)
  }

  /** A command that reaches no daemon, and opens the store itself. */
  direct(...args: string[]): Promise<Json> {
    return commandFrom(ALONE, this.env, ...args)
  }

  skip(why: string): undefined {
    this.scene.counts.skipped.set(this.scene.name, why)
  }

  finally(end: () => unknown): void {
    this.ending.push(end)
  }

  async end(): Promise<void> {
    for (const end of this.ending.toReversed()) await end()
    await this.scene.end()
  }
}

export const take = (name: string, agent: string, ttl = '1m', ...more: string[]) => [
  ...['lock', 'acquire', name, '--agent', agent, '--ttl', ttl],
  ...more,
]

/** A process that lives and does nothing, for a lease to name. */
export function living(stage: Stage): number {
  const child = spawn('sleep', ['120'], { stdio: 'ignore' })
  stage.finally(() => child.kill('SIGKILL'))
  return child.pid!
}

/** One connection, kept open, on which requests are made by hand. */
export class Line {
  private readonly socket: Socket
  private said = ''

  constructor(private readonly port: number) {
    this.socket = connect(port, '127.0.0.1').on('error', () => undefined)
    this.socket.setEncoding('utf8').on('data', (text: string) => (this.said += text))
  }

  get(path: string): Promise<string> {
    return this.send(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${this.port}\r\n\r\n`)
  }

  post(path: string, token: string, body: object): Promise<string> {
    const text = JSON.stringify(body)
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: 127.0.0.1:${this.port}`,
      `authorization: Bearer ${token}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(text)}`,
    ]
    return this.send(`${head.join('\r\n')}\r\n\r\n${text}`)
  }

  private async send(text: string): Promise<string> {
    this.said = ''
    this.socket.write(text)
    await until(() => /\r\n\r\n[^]*\S/.test(this.said), 3_000)
    return this.said.split('\r\n\r\n')[1] ?? ''
  }

  end(): void {
    this.socket.destroy()
  }
}
