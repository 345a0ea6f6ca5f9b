import { readOutput } from '../../../stores/run_output.ts'

/** The end of what a run has printed, as lines; none where it runs elsewhere, or has said nothing. */
export function lastLines(stateFolder: string, run_id: string, bytes: number): string[] {
  const output = readOutput(stateFolder, run_id, undefined, bytes)
  return output ? output.text.trimEnd().split(/\r?\n|\r/) : []
}
