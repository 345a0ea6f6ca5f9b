import type { Run } from '../../core/schema/task.ts'
import { readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import type { ProcessRef } from '../../core/rows.ts'
import { type Bound, DAY_MS } from '../../core/retention.ts'
import { endRunner, host, processFact, seat } from '../../machine/process.ts'
import type { Store } from '../../stores/writer/store.ts'
import { readMeta, type RunMeta, writeMeta } from '../runner/run_folder.ts'
import { runFolder } from '../../machine/run_output.ts'

/** A runner whose run was ended by others learns it with its next word, and goes by itself. */
export const RUNNER_MS = 2_000

const FOLDERS_AT_ONCE = 50

/**
 * A run of `task_id` may have ended without its runner: its `meta.json` is made true, and a runner
 * that is still there (stopped, or stuck) is ended once it had the time to go.
 */
export async function settleRun(store: Store, folder: string, task_id: string): Promise<void> {
  const runs = await store.read((view) => [...view.scan('runs_of', task_id)])
  settleAll(folder, runs)
}

/** One that cannot be settled keeps none of the others from it; it is thrown in the end. */
function settleAll(folder: string, runs: (Run | undefined)[]): void {
  const failed = runs.flatMap((run) => {
    try {
      if (run) settle(folder, run)
      return []
    } catch (error) {
      return [error]
    }
  })
  if (failed.length > 0) throw failed[0]
}

function settle(folder: string, run: Run): void {
  const path = runFolder(folder, run.id)
  const meta = readMeta(path)
  if (!meta || run.ended_at === null || !run.dispatcher) return
  if (meta.status !== run.status || !meta.ended_at) correct(path, meta, run)
  endLater({ host, seat, pid: meta.runner_pid, start: meta.runner_start }, path)
}

function endLater(runner: ProcessRef, folder: string): void {
  if (processFact(runner) !== 'alive') return
  setTimeout(() => endRunner(runner, folder), RUNNER_MS).unref()
}

/** What the folder says of a run that is over is what the store says. */
function correct(path: string, meta: RunMeta, run: Run): void {
  const { status, ended_at, exit_code, signal, outcome: reason } = run
  writeMeta(path, { ...meta, status, ended_at, exit_code, signal, reason, lock_released: true })
}

/** At a dispatcher's start: folders of runs that ended while nobody was there to see it. */
export async function settleFolders(store: Store, folder: string): Promise<void> {
  const ids = runIds(folder)
  // A month of runs may be here: others are served meanwhile.
  for (let from = 0; from < ids.length; from += FOLDERS_AT_ONCE) {
    await new Promise<void>((resolve) => void setImmediate(resolve))
    const some = ids.slice(from, from + FOLDERS_AT_ONCE)
    const open = some.filter((id) => isUnsettled(readMeta(runFolder(folder, id))))
    const runs = await store.read((view) => open.map((id) => view.get('run', id)))
    settleAll(folder, runs)
  }
}

function isUnsettled(meta: RunMeta | undefined): boolean {
  if (!meta) return false
  const runner = { host, seat, pid: meta.runner_pid, start: meta.runner_start }
  return meta.ended_at === null || processFact(runner) === 'alive'
}

const runIds = (folder: string) => attempt(() => readdirSync(join(folder, 'runs')), [])

/**
 * Removes what runs wrote here, of those that ended long ago and of the oldest beyond so many. What
 * the store says of a run counts; where its row is gone, what the folder says.
 */
export async function pruneRuns(
  store: Store,
  folder: string,
  { days, max }: Bound,
  rest: () => Promise<void>,
): Promise<void> {
  const ended: { path: string; ended_at: string }[] = []
  const ids = runIds(folder)
  for (let from = 0; from < ids.length; from += FOLDERS_AT_ONCE) {
    const some = ids.slice(from, from + FOLDERS_AT_ONCE).map((id) => runFolder(folder, id))
    const metas = some.map((path) => ({ path, meta: readMeta(path) }))
    const rows = await store.read((view) =>
      metas.map(({ meta }) => (meta ? view.get('run', meta.id)?.ended_at : null)),
    )
    metas.forEach(({ path, meta }, i) => {
      const ended_at = rows[i] === undefined ? meta?.ended_at : rows[i]
      if (ended_at && meta?.ended_at) ended.push({ path, ended_at })
    })
    await rest()
  }
  const now_ms = await store.read((view) => Math.min(view.wall, view.now))
  const old_ms = days === null ? Number.NEGATIVE_INFINITY : now_ms - days * DAY_MS
  ended.sort((a, b) => (a.ended_at < b.ended_at ? 1 : -1))
  const going = ended.filter(({ ended_at }, i) => {
    return Date.parse(ended_at) < old_ms || (max !== null && i >= max)
  })
  for (const { path } of going) {
    await rm(path, { recursive: true, force: true })
    await rest()
  }
}
