import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { OUTPUT, runFolder } from '../../../stores/run_output.ts'

/** The end of what a run has printed, as lines; none if it runs elsewhere or was silent. */
export function lastLines(stateFolder: string, run_id: string, bytes: number): string[] {
  let file: number
  try {
    file = openSync(join(runFolder(stateFolder, run_id), OUTPUT), 'r')
  } catch {
    return []
  }
  try {
    const { size } = fstatSync(file)
    const buffer = Buffer.alloc(Math.min(size, bytes))
    readSync(file, buffer, 0, buffer.length, size - buffer.length)
    return buffer
      .toString('utf8')
      .trimEnd()
      .split(/\r?\n|\r/)
  } finally {
    closeSync(file)
  }
}
