import type { ProcessRef } from '../../src/core/rows.ts'
import type { Fact } from '../../src/core/view.ts'
import type { Machine } from '../../src/machine/machine.ts'

const keyOf = (ref: ProcessRef) => `${ref.seat} ${ref.pid} ${ref.start}`

/** A machine whose clocks, boots and processes a test decides. Time stands still until advanced. */
export class MachineSim implements Machine {
  readonly host = 'sim'
  boot = 'boot-1'
  /** Groups that were asked to stop, in order. */
  readonly stopped: ProcessRef[] = []
  /** Whether a stop succeeds; a process that another user runs cannot be stopped, say. */
  canStop = true
  /** How many processes and groups have ended. */
  deaths = 0
  private boots = 1
  private mono_ms = 1_000
  private wall_ms = Date.UTC(2026, 0, 5, 9)
  private pids = 100
  private readonly processes = new Set<string>()
  private readonly groups = new Set<string>()

  get seat(): string {
    return `${this.boot}/pid:[1]`
  }

  monotonicMs(): number {
    return this.mono_ms
  }

  wallMs(): number {
    return this.wall_ms
  }

  advance(ms: number): void {
    this.mono_ms += ms
    this.wall_ms += ms
  }

  /** Somebody sets the clock on the wall. */
  jumpWall(ms: number): void {
    this.wall_ms += ms
  }

  /** The machine is put back to a snapshot of its memory; what is on disk stays. */
  rewind(ms: number): void {
    this.mono_ms -= ms
  }

  /** A new boot: monotonic time and pids start over, and nothing that ran before can be seen. */
  reboot(off_ms = 0): void {
    this.boots += 1
    this.boot = `boot-${this.boots}`
    this.mono_ms = 10
    this.wall_ms += off_ms
    this.pids = 100
    this.processes.clear()
    this.groups.clear()
  }

  spawn(): ProcessRef {
    const ref = this.nextRef()
    this.processes.add(keyOf(ref))
    return ref
  }

  spawnGroup(): ProcessRef {
    const ref = this.nextRef()
    this.groups.add(keyOf(ref))
    return ref
  }

  /** A process of another pid namespace or host: whether it lives cannot be known from here. */
  elsewhere(): ProcessRef {
    return { ...this.nextRef(), host: 'far', seat: 'far/pid:[2]' }
  }

  kill(ref: ProcessRef): void {
    this.deaths += 1
    this.processes.delete(keyOf(ref))
  }

  endGroup(ref: ProcessRef): void {
    this.deaths += 1
    this.groups.delete(keyOf(ref))
  }

  process(ref: ProcessRef): Fact {
    return this.look(this.processes, ref)
  }

  group(ref: ProcessRef): Fact {
    return this.look(this.groups, ref)
  }

  leader(ref: ProcessRef): Fact {
    return this.look(this.groups, ref)
  }

  async stop(group: ProcessRef): Promise<boolean> {
    this.stopped.push(group)
    if (!this.canStop || group.seat !== this.seat) return false
    this.endGroup(group)
    return true
  }

  private look(living: Set<string>, ref: ProcessRef): Fact {
    if (ref.seat !== this.seat) return 'unknown'
    return living.has(keyOf(ref)) ? 'alive' : 'dead'
  }

  private nextRef(): ProcessRef {
    this.pids += 1
    return { host: this.host, seat: this.seat, pid: this.pids, start: this.mono_ms }
  }
}
