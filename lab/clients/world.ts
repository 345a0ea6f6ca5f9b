import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
// reason: what is waited for is in other programs, which tell nobody.
import { setTimeout as pause } from 'node:timers/promises'
import { Gate, ScriptedModel, type Step } from './model.ts'
import type { Client } from './client.ts'

/** No client may take longer; a trial that waits this long has failed. */
const CLIENT_SECONDS = 900
const PATIENCE_MS = 120_000

/** Looks until there is something, and fails with `what` was waited for. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  patience_ms = PATIENCE_MS,
): Promise<NonNullable<T>> {
  for (const end = Date.now() + patience_ms; ; await pause(40)) {
    const found = await look()
    if (found) return found
    if (Date.now() > end) throw new Error(`waited ${patience_ms / 1000} s in vain: ${what}`)
  }
}

/** A client that runs. */
export class Running {
  out = ''
  isOver = false
  readonly ended: Promise<void>

  constructor(
    readonly child: ChildProcess,
    private readonly isTerminal: boolean,
  ) {
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => this.#hear(text))
    }
    child.stdin?.on('error', () => undefined)
    this.ended = new Promise((resolve) => child.on('close', resolve)).then(() => {
      this.isOver = true
    })
  }

  /** Terminals answer questions of programs: where the cursor is, what they are, which colours. */
  #hear(text: string): void {
    this.out += text
    if (!this.isTerminal) return
    if (text.includes('\u001B[6n')) this.type('\u001B[1;1R')
    if (text.includes('\u001B[c')) this.type('\u001B[?62;22c')
    if (text.includes('\u001B]11;?')) this.type('\u001B]11;rgb:0000/0000/0000\u001B\\')
  }

  /** Waits until the client's model has come to a gate; fails with what the client printed. */
  async reaches(gate: Gate): Promise<void> {
    try {
      await until('', () => gate.isReached || this.isOver)
    } finally {
      // oxlint-disable-next-line no-unsafe-finally -- says more than the error that it replaces
      if (!gate.isReached) throw new Error(`its script stopped: ${this.out.slice(-2000)}`)
    }
  }

  type(text: string): void {
    this.child.stdin?.write(text)
  }

  /** The client and all that it started and that stayed in its group: gone at once. */
  kill(): void {
    try {
      process.kill(-this.child.pid!, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

interface Lease {
  path: string
  holder: string
}

/** A repository that `leasehold init` set up, a home folder, a model: all of it for one trial. */
export class World {
  readonly repo: string
  readonly home: string
  readonly env: Record<string, string>
  readonly model = new ScriptedModel()
  readonly #running: Running[] = []
  port = 0

  private constructor(
    readonly root: string,
    readonly bin: string,
  ) {
    this.repo = join(root, 'repo')
    this.home = join(root, 'home')
    const PATH = [bin, dirname(process.execPath), '/usr/local/bin:/usr/bin:/bin'].join(':')
    this.env = { HOME: this.home, PATH, TERM: 'xterm-256color', LANG: 'C.UTF-8', SHELL: '/bin/sh' }
  }

  static async make(
    root: string,
    bin: string,
    clients: Client[],
    files: Record<string, string>,
    { plugins, isSetUp = true }: { plugins?: string; isSetUp?: boolean } = {},
  ): Promise<World> {
    rmSync(root, { recursive: true, force: true })
    const world = new World(root, bin)
    for (const each of [world.repo, world.home]) mkdirSync(each, { recursive: true })
    // Login shells of clients find their programs as everybody's do.
    writeFileSync(join(world.home, '.profile'), `export PATH="${world.env['PATH']}"\n`)
    world.port = await world.model.listen()
    world.run('git', 'init', '-q', '-b', 'main')
    world.run('git', 'config', 'user.name', 'Ada')
    world.run('git', 'config', 'user.email', 'ada@example.org')
    for (const [path, text] of Object.entries(files)) world.write(path, text)
    for (const client of clients) {
      await client.prepare(world)
      if (plugins !== undefined) world.run('sh', '-c', client.plug!(plugins))
    }
    const kinds = clients.map(({ kind }) => kind).join(',')
    if (isSetUp) world.run('leasehold', 'init', '--yes', '--client', kinds)
    world.run('git', 'add', '-A')
    world.run('git', 'commit', '-qm', 'Begin')
    return world
  }

  /** Runs a program in the repository to its end; throws unless it ended well. */
  run(program: string, ...args: string[]): string {
    const options = { cwd: this.repo, env: this.env, encoding: 'utf8', timeout: 60_000 } as const
    const { status, stdout, stderr } = spawnSync(program, args, options)
    if (status === 0) return stdout
    throw new Error(`${program} ${args.join(' ')} exited with ${status}: ${stdout}${stderr}`)
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.repo, path)), { recursive: true })
    writeFileSync(join(this.repo, path), text)
  }

  read(path: string): string | undefined {
    const file = join(this.repo, path)
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined
  }

  leases(): Lease[] {
    return (JSON.parse(this.run('leasehold', 'reserve', 'list', '--json')) as { items: Lease[] })
      .items
  }

  isHeld(path: string): boolean {
    return this.leases().some((each) => each.path === path)
  }

  /** Seconds until nobody has `path`; undefined if somebody still has after `patience_ms`. */
  async secondsToFree(path: string, patience_ms = 20_000): Promise<number | undefined> {
    const began = performance.now()
    try {
      await until(`${path} is free`, () => !this.isHeld(path), patience_ms)
      return (performance.now() - began) / 1000
    } catch {
      return undefined
    }
  }

  script(name: string, steps: Step[]): string {
    this.model.scripts.set(name, steps)
    return `[play ${name}] go`
  }

  /** Starts a client; on a terminal, if it is to be typed to. */
  start(client: Client, args: string[], isTerminal = false): Running {
    const env = { ...this.env, ...client.env(this) }
    const quoted = [client.kind, ...args].map((arg) => `'${arg.replaceAll("'", String.raw`'\''`)}'`)
    const limit = ['-k', '5', String(CLIENT_SECONDS)]
    const child = isTerminal
      ? spawn('timeout', [...limit, ...terminal(quoted.join(' '))], this.#how(env, 'pipe'))
      : spawn('timeout', [...limit, client.kind, ...args], this.#how(env, 'ignore'))
    const running = new Running(child, isTerminal)
    this.#running.push(running)
    return running
  }

  #how(env: Record<string, string>, stdin: 'pipe' | 'ignore') {
    const stdio: ['pipe' | 'ignore', 'pipe', 'pipe'] = [stdin, 'pipe', 'pipe']
    return { cwd: this.repo, env, stdio, detached: true }
  }

  /** Plays a script to its end, and says what the client printed. */
  async play(client: Client, name: string, steps: Step[], args = client.once): Promise<string> {
    const running = this.start(client, args(this.script(name, steps)))
    await running.ended
    return running.out
  }

  async end(): Promise<void> {
    this.model.close()
    for (const running of this.#running) running.kill()
    await Promise.all(this.#running.map(({ ended }) => ended))
    const server = join(this.repo, '.leasehold/server.json')
    if (!existsSync(server)) return
    const { pid } = JSON.parse(readFileSync(server, 'utf8')) as { pid: number }
    process.kill(pid, 'SIGTERM')
  }
}

/** `script` of util-linux gives a program a terminal; killed, it is a window that was closed. */
const terminal = (command: string) => [
  ...['script', '-qfec', `stty rows 50 cols 160; exec ${command}`, '/dev/null'],
]

/** A step that waits for its trial, and the gate that lets it go on. */
export function held(step: Step = { text: 'Done.' }): { step: Step; gate: Gate } {
  const gate = new Gate()
  return { step: { ...step, gate }, gate }
}
