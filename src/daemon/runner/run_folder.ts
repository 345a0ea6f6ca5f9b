import { lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import type { RunStatus } from '../../core/rows.ts'
import { writePrivate } from '../../machine/private_file.ts'
import { host, ownProcess } from '../../machine/process.ts'
import type { ShownRun } from '../../operations/runs.ts'
import type { Exit } from './command.ts'
import type { RunSpec } from './spec.ts'

/** What `meta.json` of a run says: who, where, since when, and how it ended. */
export interface RunMeta {
  id: string
  task_id: string
  status: RunStatus
  user: string | null
  project: string | null
  agent: string
  title: string
  lock_id: string
  lock_released: boolean
  /** The command, which leads its process group; null while there is none. */
  pid: number | null
  runner_pid: number
  /** Its start time: a pid alone may be another process by now. */
  runner_start: number
  host: string
  /** When the command was let go; null before, and for ever if it never was. */
  started_at: string | null
  ended_at: string | null
  exit_code: number | null
  signal: string | null
  /** Why we ended it, or why it could not begin; null when it ended by itself. */
  reason: string | null
  time_limit_seconds: number | null
}

/**
 * Makes the folder of a run, for this login only. False when it was there already: another runner
 * may be at work in it. Throws when something else stands in its place.
 */
export function makeRunFolder(folder: string): boolean {
  mkdirSync(join(folder, '..'), { recursive: true, mode: 0o700 })
  try {
    mkdirSync(folder, { mode: 0o700 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const found = lstatSync(folder)
  const ours = found.isDirectory() && found.uid === process.getuid?.() && !(found.mode & 0o077)
  if (!ours) throw new Error(`${folder} is not a folder of this login alone`)
  return false
}

const META = 'meta.json'

/** Writes how a run stands, in one step: a reader finds all of it, or what was there before. */
export function writeMeta(folder: string, meta: RunMeta, synced = true): void {
  writePrivate(folder, META, `${JSON.stringify(meta, null, 2)}\n`, { synced })
}

/** What the runner last said; undefined when it said nothing that can be read. */
export const readMeta = (folder: string) =>
  attempt(() => JSON.parse(readFileSync(join(folder, META), 'utf8')) as RunMeta, undefined)

/** What `meta.json` says of the run, stage by stage. */
export class RunNotes {
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
    if (this.isOurs) this.write({}, false)
  }

  write(changes: Partial<RunMeta>, synced = true): void {
    this.meta = { ...this.meta, ...changes }
    try {
      writeMeta(this.folder, this.meta, synced)
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
