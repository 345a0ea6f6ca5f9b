import * as fs from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import type { RunStatus } from '../../core/rows.ts'

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
  fs.mkdirSync(join(folder, '..'), { recursive: true, mode: 0o700 })
  try {
    fs.mkdirSync(folder, { mode: 0o700 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const found = fs.lstatSync(folder)
  const ours = found.isDirectory() && found.uid === process.getuid?.() && !(found.mode & 0o077)
  if (!ours) throw new Error(`${folder} is not a folder of this login alone`)
  return false
}

/** A new file for this login only, never through a planted link. */
export function openPrivate(path: string): number {
  const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants
  return fs.openSync(path, O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
}

/** Replaces the file, whole or not at all, and durably unless `durable` is false. */
export function writeWhole(path: string, text: string, durable = true): void {
  // Ours alone; one that a former process of this number left behind is in the way.
  const temporary = `${path}.${process.pid}`
  fs.rmSync(temporary, { force: true })
  const fd = openPrivate(temporary)
  try {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length;) at += fs.writeSync(fd, bytes, at)
    if (durable) fs.fsyncSync(fd)
    fs.renameSync(temporary, path)
  } catch (error) {
    fs.rmSync(temporary, { force: true })
    throw error
  } finally {
    fs.closeSync(fd)
  }
}

const META = 'meta.json'

/** Writes how a run stands, in one step: a reader finds all of it, or what was there before. */
export function writeMeta(folder: string, meta: RunMeta, durable = true): void {
  writeWhole(join(folder, META), `${JSON.stringify(meta, null, 2)}\n`, durable)
}

/** What the runner last said; undefined when it said nothing that can be read. */
export const readMeta = (folder: string) =>
  attempt(() => JSON.parse(fs.readFileSync(join(folder, META), 'utf8')) as RunMeta, undefined)
