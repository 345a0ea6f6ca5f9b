import type { ShownRun } from '../../operations/runs.ts'
import { host, ownProcess } from '../../machine/process.ts'
import type { Exit } from './command.ts'
import { readMeta, type RunMeta, writeMeta } from './run_folder.ts'
import type { RunSpec } from './spec.ts'

/** What `meta.json` says of the run, stage by stage. */
export class Notes {
  /** Whether the folder is of our making. */
  made = false
  private readonly folder: string
  private meta: RunMeta

  constructor(spec: RunSpec) {
    this.folder = spec.folder
    const { run_id, task_id, user, project, agent, title, lock, fence, time_limit_ms } = spec
    this.meta = {
      id: run_id,
      task_id,
      status: 'running',
      user,
      project,
      agent,
      title,
      lock_id: `${lock}#${fence}`,
      lock_released: false,
      pid: null,
      runner_pid: process.pid,
      runner_start: ownProcess().start,
      host,
      started_at: null,
      ended_at: null,
      exit_code: null,
      signal: null,
      reason: null,
      time_limit_seconds: time_limit_ms === null ? null : time_limit_ms / 1000,
    }
  }

  /** Whether the command was let go. */
  get hasBegun(): boolean {
    return this.meta.started_at !== null
  }

  /** Whether it is for us to say: the run is ours, or nobody else is at work in the folder. */
  private get isOurs(): boolean {
    const said = readMeta(this.folder)
    return this.hasBegun || (said ? said.runner_pid === process.pid : this.made)
  }

  /** What is known before the store was asked. Not worth a sync: the next stage follows. */
  begin(): void {
    if (this.isOurs) this.write({}, { durable: false })
  }

  write(changes: Partial<RunMeta>, { durable = true } = {}): void {
    this.meta = { ...this.meta, ...changes }
    try {
      writeMeta(this.folder, this.meta, durable)
    } catch {
      // The run goes on without: the store knows the same, and the next stage writes it again.
    }
  }

  /** The end as the store has it; without its word the run is lost, for nobody can report it. */
  end(run: ShownRun | undefined, { code, signal }: Exit, reason: string | null): void {
    if (!this.isOurs) return
    this.write({
      exit_code: code,
      signal,
      reason,
      status: run?.status ?? 'lost',
      ended_at: run?.ended_at ?? new Date().toISOString(),
      lock_released: run?.lock_released ?? false,
    })
  }
}
