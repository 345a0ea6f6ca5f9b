import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Random } from '../../test/simulation/random.ts'
import type { Counts } from './counts.ts'
import { after, type Fact, Notes, nowMs, type Role } from './history.ts'
import { BIN, type Env, Proc, signal, statOf, TEST_CLI } from './processes.ts'
import { WITNESS } from './witness.ts'

const BEAT_MS = 20
const STILL_MS = 200

/** Where one world plays: its folders, its history, and what was done to its processes. */
export class Scene {
  readonly calls: string
  readonly out: string
  readonly random: Random
  env: Env
  /** The command line: as it ships, or with a bug in it to see that it is found. */
  readonly bin: string
  /** Nothing is started before this is resolved: without power nothing starts. */
  powered: Promise<void> = Promise.resolve()
  /** When the faults are over. */
  isOver = false
  private hasEnded = false
  private readonly facts: Notes
  private readonly procs = new Set<Proc>()
  private readonly killed = new Set<string>()
  private readonly paused = new Set<number>()

  constructor(
    readonly name: string,
    readonly folder: string,
    seed: number,
    readonly counts: Counts,
    plant?: string,
  ) {
    this.bin = plant === undefined ? BIN : TEST_CLI
    this.random = new Random(seed)
    this.calls = join(folder, 'calls')
    this.out = join(folder, 'out')
    const home = join(folder, 'home')
    // PostgreSQL runs as another login, and has to get to its data.
    for (const each of [folder, dirname(folder)]) chmodSync(each, 0o755)
    for (const each of [this.calls, this.out, home]) mkdirSync(each, { recursive: true })
    this.facts = new Notes(join(this.calls, 'facts'))
    writeFileSync(join(this.out, 'witness.sh'), WITNESS)
    const { PATH } = process.env
    this.env = { PATH, HOME: home, NO_COLOR: '1', LEASEHOLD_EMBEDDINGS: 'off', OUT: this.out }
    // Whoever runs the rig wrote its configuration.
    this.env['LEASEHOLD_TRUST_CONFIG'] = 'yes'
    if (plant !== undefined) this.env['LEASEHOLD_PLANT'] = plant
  }

  spawn(
    who: string,
    role: Role,
    argv: string[],
    env: Env = this.env,
    before: readonly string[] = [],
  ): Proc {
    const proc = new Proc(who, role, argv, env, this.folder, before)
    this.procs.add(proc)
    void proc.ended.then(() => {
      this.procs.delete(proc)
      if (role === 'daemon') this.note(who, proc.err.slice(-2_000))
    })
    return proc
  }

  fact(fact: Fact): void {
    this.facts.write(fact)
  }

  down(what: string): void {
    this.fact({ t: nowMs(), fact: 'down', what })
  }

  up(what: string): void {
    this.fact({ t: nowMs(), fact: 'up', what })
  }

  /** kill -9, counted and written down. */
  kill(proc: Proc): void {
    this.killPid(proc.pid, proc.who, proc.role)
  }

  killPid(pid: number, who: string, role: Role): void {
    // The death of a holder must not be noted later than others may notice it.
    const t = nowMs()
    if (!signal(pid, 'SIGKILL') || this.killed.has(who)) return
    this.killed.add(who)
    this.fact({ t, fact: 'killed', who, role })
    this.counts.killed(role)
  }

  /** A process has ended, if not by us then by itself: at an aimed moment, or in good order. */
  ended(proc: Proc, by: NodeJS.Signals | null): void {
    if (this.killed.has(proc.who)) return
    this.fact({ t: nowMs(), fact: 'killed', who: proc.who, role: proc.role, self: true })
    if (by === 'SIGKILL') this.counts.killed(proc.role)
  }

  /** SIGSTOP, a while, SIGCONT. */
  async pause(pid: number, who: string, role: Role, ms: number): Promise<void> {
    if (this.paused.has(pid)) return
    const t = nowMs()
    if (!signal(pid, 'SIGSTOP')) return
    this.paused.add(pid)
    this.fact({ t, fact: 'stopped', who, role })
    await after(ms)
    this.paused.delete(pid)
    // One that was killed meanwhile, or went on by itself, has not paused for so long.
    if (ms > 0 && statOf(pid)?.state === 'T') this.counts.paused(role)
    signal(pid, 'SIGCONT')
    this.fact({ t: nowMs(), fact: 'continued', who, role })
  }

  /** Lets those go on, after a while, who have stopped themselves at an aimed moment. */
  async awaken(ms: () => number): Promise<void> {
    while (!this.hasEnded) {
      for (const proc of this.procs) {
        const stops = proc.role === 'sdk' || proc.role === 'embedded'
        if (!stops || this.paused.has(proc.pid) || statOf(proc.pid)?.state !== 'T') continue
        const rest_ms = this.isOver ? 0 : ms()
        void this.pause(proc.pid, proc.who, proc.role, rest_ms)
      }
      await after(50)
    }
  }

  /** Notices when the whole machine stands still: nobody can be served then. */
  async feelPulse(): Promise<void> {
    for (let last = nowMs(); !this.isOver;) {
      await after(BEAT_MS)
      const t = nowMs()
      if (t - last > STILL_MS) {
        this.fact({ t: last, fact: 'down', what: 'machine' })
        this.fact({ t, fact: 'up', what: 'machine' })
        this.counts.figure('machine stood still, ms', Math.round(t - last))
      }
      last = t
    }
  }

  note(what: string, says: string): void {
    const line = `${nowMs().toFixed(0)} ${what}: ${says.replaceAll('\n', ' | ')}\n`
    appendFileSync(join(this.folder, 'log'), line)
  }

  violate(check: string, says: string): void {
    this.counts.violations.push({ check, says, where: this.name })
    this.note('violation', `${check}: ${says}`)
  }

  /** Ends all that still runs. */
  async end(): Promise<void> {
    this.isOver = true
    this.hasEnded = true
    for (const proc of this.procs) signal(proc.pid, 'SIGKILL')
    await Promise.all([...this.procs].map((proc) => proc.ended))
    this.facts.close()
  }
}
