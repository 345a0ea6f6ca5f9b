import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { readMeta, type RunMeta } from '../../src/daemon/runner/run_folder.ts'
import { type Json, type Served, servingPlace, startDaemon } from '../doors/serving.ts'
import { BIN, isAlive, type Running, type Sandbox, stateOf, TEST_CLI, until } from './processes.ts'
import { runFolder } from '../../src/machine/run_output.ts'

/** A line that an agent wrote about itself. The order of lines is the order of what happened. */
export interface Line {
  what: string
  task: string
  run: string
  fence: number
  pid: number
}

/**
 * What every agent script here begins with. `begin` notes the start, once per fence and alone on
 * its task, or else says what is wrong; `finish` notes the end.
 */
const WITNESS = `
say() { echo "$1 $LEASEHOLD_TASK $LEASEHOLD_RUN $LEASEHOLD_FENCE $$" >> "$OUT/log"; }
wrong() { echo "$LEASEHOLD_RUN $LEASEHOLD_FENCE: $1" >> "$OUT/wrong"; }
# By its start time: within a long storm numbers of processes come round again.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f1,20; }
begin() {
  (set -C; : > "$OUT/fence-$LEASEHOLD_FENCE") 2>/dev/null || wrong "started twice"
  while read -r pid start; do
    now=$(started "$pid")
    [ "\${now#[!ZX] }" = "$start" ] && wrong "runs beside $pid"
  done 2>/dev/null < "$OUT/pids-$LEASEHOLD_TASK"
  now=$(started $$)
  echo "$$ \${now#? }" >> "$OUT/pids-$LEASEHOLD_TASK"
  say start
}
finish() { say end; }
until_there() { while [ ! -e "$OUT/$1" ]; do sleep 0.05; done; }
forever() { while :; do sleep 0.2; done; }
`

/** An agent for \`config.json\`: a script for the shell, which is given no prompt to execute. */
export function script(body: string, more: Json = {}): Json {
  return { command: ['/bin/sh', '-c', WITNESS + body], ...more }
}

/** Starts, stays for a moment, ends. */
export const BRIEF = 'begin; sleep 0.05; finish'
/** Stays until the file `go` is there. */
export const HELD = 'begin; until_there go; finish'

/** What a dispatcher says when it has taken in a changed `config.json`. */
const COUNTS = 'the new configuration counts'

/** A store with a queue, its `config.json`, and a folder in which agents leave what they did. */
export class Dispatching {
  readonly out: string
  daemon!: Served
  /**
   * Were there before, by when they began: to look into each of them again and again is most of the
   * work, and within a long test numbers of processes come round again.
   */
  private readonly others = new Map(readdirSync('/proc').map((name) => [name, begunAt(name)]))

  constructor(readonly place: Sandbox) {
    this.out = place.path('out')
    mkdirSync(this.out)
    mkdirSync(place.state, { mode: 0o700 })
  }

  /** Writes `config.json` whole. Agents get `OUT`, the folder for what they leave behind. */
  configure(config: Json): void {
    const agents = Object.entries(config.agents ?? { brief: script(BRIEF) }).map(
      ([name, agent]: [string, Json]) => [name, { ...agent, env: { OUT: this.out, ...agent.env } }],
    )
    const [first] = agents[0] as [string]
    const projects = config.projects ?? { web: { agent: first } }
    this.save(JSON.stringify({ ...config, projects, agents: Object.fromEntries(agents) }))
  }

  /** The same while a daemon dispatches: waits until the new configuration counts. */
  async reconfigure(config: Json): Promise<void> {
    const counted = () => this.daemon.running.err.split(COUNTS).length
    const before = counted()
    this.configure(config)
    await until('the new configuration counts', () => counted() > before)
  }

  /** Puts `text` in place of `config.json`, as editors do. */
  save(text: string): void {
    const path = join(this.place.state, 'config.json')
    writeFileSync(`${path}.new`, text, { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }

  async serve(env: Record<string, string> = {}, program = BIN, flags?: string[]): Promise<Served> {
    const more = flags && { flags }
    const options = { program: [process.execPath, program], env, ...more }
    this.daemon = await startDaemon(this.place, options)
    return this.daemon
  }

  /** A dispatcher on its own, without a daemon. */
  async dispatch(args: string[] = [], env: Record<string, string> = {}): Promise<Running> {
    const running = this.place.start(['--json', 'dispatch', ...args], { env, input: '' })
    await running.said(/dispatching;/)
    return running
  }

  /** Starts a program of the test build that will stop itself at a step, and waits for that. */
  async stoppedAt(step: string, args: string[]): Promise<Running> {
    const program = [process.execPath, TEST_CLI]
    const running = this.place.start(args, { program, env: { LEASEHOLD_STOP_AT: step } })
    await until(`something stops at ${step}`, () => this.stopped().length > 0)
    return running
  }

  /** Enqueues through the daemon. */
  add(id: string, user: string, more: Json = {}): Promise<Json> {
    return this.daemon.ok('queue.add', { id, user, project: 'web', prompt: `do ${id}`, ...more })
  }

  /** Lines that agents wrote, in order. */
  lines(what?: string): Line[] {
    const all = this.read('log').split('\n').filter(Boolean)
    const found = all.map((line) => {
      const [said, task, run, fence, pid] = line.split(' ') as [string, string, string, ...string[]]
      return { what: said, task, run, fence: Number(fence), pid: Number(pid) }
    })
    return what === undefined ? found : found.filter((line) => line.what === what)
  }

  /** What agents found wrong: a second start for a fence, or two at once on a task. */
  wrong(): string[] {
    return this.read('wrong').split('\n').filter(Boolean)
  }

  read(name: string): string {
    const path = join(this.out, name)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  write(name: string): void {
    writeFileSync(join(this.out, name), '')
  }

  meta(run: string): RunMeta | undefined {
    return readMeta(runFolder(this.place.state, run))
  }

  async task(id: string): Promise<Json> {
    return this.daemon.ok('task.get', { id })
  }

  /** Waits until task `id` has this status, and returns it. */
  async become(id: string, status: string): Promise<Json> {
    return until(`task ${id} is ${status}`, async () => {
      const task = await this.task(id)
      return task.status === status && task
    })
  }

  /** Waits until so many agents have begun (or ended). */
  async seen(what: string, count: number): Promise<Line[]> {
    return until(`${count} × ${what}, not ${this.lines(what).length}`, () => {
      const lines = this.lines(what)
      return lines.length >= count && lines
    })
  }

  /** Waits until nothing waits or runs any more, and returns the queue's status. */
  async idle(): Promise<Json> {
    return until('the queue is empty', async () => {
      const status = await this.daemon.ok('queue.status')
      return status.pending.total === 0 && status.active.slots_used === 0 && status
    })
  }

  /** All processes of this test that live: every one was given its home folder. */
  processes(is: (pid: number) => boolean = isAlive): number[] {
    const isOther = (name: string) =>
      this.others.has(name) && this.others.get(name) === begunAt(name)
    const pids = readdirSync('/proc').filter((name) => !isOther(name))
    return pids.map(Number).filter((pid) => pid > 0 && is(pid) && this.isOurs(pid))
  }

  private isOurs(pid: number): boolean {
    return environ(pid).includes(this.place.home)
  }

  /** Runners that live: all that run the runner's program. */
  runners(): number[] {
    return this.processes((pid) => isAlive(pid) && argvOf(pid).includes('runner.cjs'))
  }

  /** Agents and whatever they started: all that carry a run's mark. */
  agents(): number[] {
    return this.processes().filter((pid) => environ(pid).includes('LEASEHOLD_MARK='))
  }

  /** Ours that are stopped, by a step or by a signal. */
  stopped(): number[] {
    return this.processes((pid) => stateOf(pid) === 'T')
  }

  /** Lets all that is stopped go on. */
  awaken(): void {
    for (const pid of this.stopped()) signal(pid, 'SIGCONT')
  }
}

/** When a process began, as the kernel counts; '' for what is none. */
function begunAt(name: string): string {
  if (!/^\d+$/.test(name)) return ''
  return procText(Number(name), 'stat').split(') ').at(-1)!.split(' ')[19] ?? ''
}

export function environ(pid: number): string {
  return procText(pid, 'environ')
}

/** The arguments of a process, as others can see them; '' when it is gone. */
export function argvOf(pid: number): string {
  return procText(pid, 'cmdline').replaceAll('\0', ' ')
}

function procText(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

/** Signals a process that may have ended just now. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has.
  }
}

/** Ends these, and waits until they are gone. */
export async function killAll(pids: number[]): Promise<void> {
  for (const pid of pids) signal(pid, 'SIGKILL')
  await until(`${pids.join()} are gone`, () => !pids.some(isAlive))
}

/** A place with a queue for the test that runs now; nothing of it is left when that has ended. */
export function dispatching(config: Json = {}): Dispatching {
  const made = new Dispatching(servingPlace())
  made.configure(config)
  // Runners and agents do not carry the mark of the sandbox, so it would not find them.
  onTestFinished(async () => {
    for (let left = made.processes(); left.length > 0; left = made.processes()) await killAll(left)
  })
  return made
}

/** How many ran at once at most, of all and per key, from lines of starts and ends. */
export function most(lines: Line[], keyOf: (line: Line) => string): { all: number; each: number } {
  const running = new Map<string, number>()
  let [all, each, now] = [0, 0, 0]
  for (const line of lines) {
    const step = line.what === 'start' ? 1 : -1
    const key = keyOf(line)
    now += step
    running.set(key, (running.get(key) ?? 0) + step)
    all = Math.max(all, now)
    each = Math.max(each, running.get(key)!)
  }
  return { all, each }
}

/** Ids of tasks here begin with their user: `ada-3`. */
export const userOf = ({ task }: Line) => task.split('-')[0]!
