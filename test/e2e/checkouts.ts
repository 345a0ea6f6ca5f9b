import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { BIN, type Ended, type Options, type Running, type Sandbox } from '../support/processes.ts'

interface ScriptedAgent {
  running: Running
  hook(event: string, input: object): Promise<{ status: number; stderr: string }>
}

const AGENT = `
require('node:readline').createInterface(process.stdin).on('line', (line) => {
  const { command, input } = JSON.parse(line)
  const { spawnSync } = require('node:child_process')
  const { status, stderr } = spawnSync('sh', ['-c', command], { input, encoding: 'utf8' })
  console.log(JSON.stringify({ status, stderr }))
})`

/** A git checkout in a sandbox, on a machine where no agent is installed. */
export class Checkout {
  readonly root: string
  private readonly path: string

  constructor(
    readonly place: Sandbox,
    name = 'repo',
    isGit = true,
  ) {
    mkdirSync(place.path(name), { recursive: true })
    this.root = realpathSync(place.path(name))
    this.path = join(place.folder, 'bin')
    mkdirSync(this.path, { recursive: true })
    if (isGit) {
      this.git('init', '--initial-branch=main')
      this.git('commit', '--allow-empty', '-m', 'begin')
    }
  }

  /** Only what git and shell scripts need: what this machine has installed is not found. */
  get env(): Record<string, string | undefined> {
    const { HOME, LEASEHOLD_TEST, NO_COLOR } = this.place.env
    const PATH = `${this.path}:/usr/bin:/bin`
    return { PATH, HOME, LEASEHOLD_TEST, NO_COLOR, LEASEHOLD_DIR: undefined }
  }

  git(...args: string[]): string {
    return this.gitIn(this.root, ...args)
  }

  gitIn(cwd: string, ...args: string[]): string {
    const who = ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'protocol.file.allow=always']
    return execFileSync('git', [...who, ...args], {
      cwd,
      encoding: 'utf8',
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  write(name: string, text: string | Buffer, mode = 0o644): void {
    const path = join(this.root, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    chmodSync(path, mode)
  }

  read(name: string): string {
    return readFileSync(join(this.root, name), 'utf8')
  }

  has(name: string): boolean {
    return existsSync(join(this.root, name))
  }

  start(args: string[], options: Options = {}): Running {
    const given = { cwd: this.root, ...options }
    return this.place.start(['init', ...args], { ...given, env: { ...this.env, ...options.env } })
  }

  init(args: string[], options: Options = {}): Promise<Ended> {
    return this.start(args, { input: '', ...options }).ended
  }

  /** A program named leasehold that notes how it was called, and refuses what it is told to. */
  install(refused = 'none'): void {
    writeFileSync(
      join(this.path, 'leasehold'),
      `#!/bin/sh
echo "$*" >> "${this.path}/calls"
case "$*" in *pre-push*) cat >> "${this.path}/refs";; esac
case "$*" in *${refused}*) echo refused >&2; exit 5;; esac
`,
      { mode: 0o755 },
    )
  }

  /** The real one. */
  installReal(): void {
    const script = `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`
    writeFileSync(join(this.path, 'leasehold'), script, { mode: 0o755 })
  }

  /** An agent that lives: it runs the hooks of its settings as its program would. */
  claude(session: string): ScriptedAgent {
    const env = { ...this.env, LEASEHOLD_TEST: this.place.env['LEASEHOLD_TEST'] }
    const program = [process.execPath, '-e', AGENT]
    const running = this.place.start([], { program, cwd: this.root, env })
    const { hooks } = JSON.parse(this.read('.claude/settings.json')) as {
      hooks: Record<string, { hooks: { command: string }[] }[]>
    }
    return {
      running,
      hook: async (event, input) => {
        const [{ command }] = hooks[event]!.at(-1)!.hooks as [{ command: string }]
        const cwd = this.root
        const told = { session_id: session, hook_event_name: event, cwd, ...input }
        const said = once(running.child.stdout!, 'data')
        running.child.stdin!.write(`${JSON.stringify({ command, input: JSON.stringify(told) })}\n`)
        const [line] = (await said) as [string]
        return JSON.parse(line) as { status: number; stderr: string }
      },
    }
  }

  noted(name: 'calls' | 'refs'): string {
    const path = join(this.path, name)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  /** Every file, link and folder with its mode and bytes; of git's own only the hooks. */
  snapshot(folder = this.root): Record<string, string> {
    const found: Record<string, string> = {}
    const walk = (path: string, name: string) => {
      const stat = lstatSync(path)
      const mode = (stat.mode & 0o7777).toString(8)
      if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`
      else if (stat.isFile()) found[name] = `${mode} ${readFileSync(path, 'latin1')}`
      else {
        if (name !== '') found[`${name}/`] = mode
        for (const each of readdirSync(path)) {
          const below = name === '' ? each : `${name}/${each}`
          if (below === '.git' || below.endsWith('.sample')) continue
          walk(join(path, each), below)
        }
      }
    }
    walk(folder, '')
    const hooks = join(folder, '.git', 'hooks')
    if (existsSync(hooks)) walk(hooks, 'hooks')
    return found
  }
}
