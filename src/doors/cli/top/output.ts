import { readOutput } from '../../../machine/run_output.ts'

/** The end of what a run has printed, as lines; none if it runs elsewhere or was silent. */
export function lastLines(stateFolder: string, run_id: string, bytes: number): string[] {
  const output = readOutput(stateFolder, run_id, undefined, bytes)
  return output ? output.text.trimEnd().split(/\r?\n|\r/) : []
}
