import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { InsideSandbox } from '../support/inside.ts'
import { BIN, type Ended, type Options } from '../support/processes.ts'

/** What stands in the table of docs/troubleshooting.md, and how it is staged here. */
export interface Situation {
  wrong: string
  /** As it is typed. */
  run: string
  exit: number
  /** What it says. `…` stands for anything. */
  says: string
  /** What `leasehold doctor` says of it: `ok` where it has nothing to say. */
  doctor: string
  /** Only root can bring this about. */
  root?: true
  stage?: (scene: Scene) => Options | void | Promise<Options | void>
}

const NAMELESS = 12_345
const ROOT = dirname(dirname(BIN))
const SERVING = new Set(['up', 'serve', 'down'])

/** A place of its own for one situation; what was begun there is ended with it. */
export class Scene extends InsideSandbox {
  readonly bin = BIN
  private readonly ends: (() => unknown)[] = []

  /** What a server, another PATH or another home is to a command, only a process shows. */
  override cli(args: string[], options: Options = {}): Promise<Ended> {
    const { PATH, HOME } = { ...this.env, ...options.env }
    const isOwn = SERVING.has(args.find((arg) => !arg.startsWith('-'))!)
    return isOwn || PATH !== this.env['PATH'] || HOME !== this.home
      ? this.process(args, options)
      : super.cli(args, options)
  }

  /** For what a process leaves behind, or finds, when it is the only one with the store open. */
  readonly apart: Options = { program: [process.execPath, BIN] }

  atEnd(end: () => unknown): void {
    this.ends.push(end)
  }

  /** A store with a task in it, as a person has after a first try. */
  async used(options: Options = {}): Promise<void> {
    await this.cli(['task', 'add', 'One', '--id', '1'], options)
  }

  async config(config: unknown): Promise<void> {
    await this.used()
    const text = typeof config === 'string' ? config : JSON.stringify(config)
    fs.writeFileSync(join(this.state, 'config.json'), text)
  }

  git(...args: string[]): void {
    execFileSync('git', args, { cwd: this.folder, stdio: 'ignore' })
  }

  /** All of it belongs to a login that has no name and no home. */
  nameless(): Options {
    execFileSync('chown', ['-R', `${NAMELESS}:${NAMELESS}`, this.folder])
    return { uid: NAMELESS }
  }

  /** The program without what is installed beside it. */
  bare(...parts: string[]): Options {
    const app = this.path('app')
    for (const part of parts) fs.cpSync(join(ROOT, part), join(app, part), { recursive: true })
    return { program: [process.execPath, join(app, 'bin/leasehold')] }
  }

  override async close(): Promise<void> {
    for (const end of this.ends.toReversed()) await end()
    await super.close()
  }
}

/** Whether this login can bring it about. */
export const canStage = ({ root }: Situation) => !root || process.getuid?.() === 0

/** What the command and the doctor said and exited with. */
export async function play(situation: Situation) {
  const scene = new Scene()
  // Where a person without leasehold on the PATH would be.
  scene.env['PATH'] = `${dirname(process.execPath)}:/usr/bin:/bin`
  try {
    const options = (await situation.stage?.(scene)) || {}
    const env = options.env ?? {}
    const words = situation.run.split(' ').map((word) => (word === 'PORT' ? env['PORT']! : word))
    const said = await scene.cli(words, options)
    const doctor = await scene.cli(['doctor'], options)
    return { command: said, doctor }
  } finally {
    await scene.close()
  }
}
