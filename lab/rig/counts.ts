import type { Violation } from './check_fences.ts'
import type { Role } from './history.ts'

/** What happened in a run of the rig, in numbers. */
export class Counts {
  readonly kills = new Map<string, number>()
  readonly pauses = new Map<string, number>()
  readonly faults = new Map<string, number>()
  readonly skipped = new Map<string, string>()
  readonly figures = new Map<string, number>()
  readonly violations: (Violation & { where: string })[] = []
  /** What is played just now. */
  now = ''
  wait_ms_max = 0
  wait_says = ''

  private static add(map: Map<string, number>, key: string, by = 1): void {
    map.set(key, (map.get(key) ?? 0) + by)
  }

  killed(role: Role): void {
    Counts.add(this.kills, role)
  }

  paused(role: Role): void {
    Counts.add(this.pauses, role)
  }

  fault(name: string): void {
    Counts.add(this.faults, name)
  }

  figure(name: string, by: number): void {
    Counts.add(this.figures, name, by)
  }

  waited(ms: number, says: string): void {
    if (ms <= this.wait_ms_max) return
    this.wait_ms_max = ms
    this.wait_says = says
  }

  static sum(map: Map<string, number>): number {
    return [...map.values()].reduce((a, b) => a + b, 0)
  }
}
