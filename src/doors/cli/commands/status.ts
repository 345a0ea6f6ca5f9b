import type { Command } from 'commander'
import * as stats from '../../../operations/stats.ts'
import { readOutput } from '../../../machine/run_output.ts'
import { folderOf } from '../../../stores/open.ts'
import type { Context } from '../context.ts'
import { io } from '../../io.ts'
import { Screen } from '../screen.ts'
import { frame } from '../show/now.ts'
import { print, show } from '../show/show.ts'
import type { Enter } from './operations.ts'

const ROWS_MAX = 200
const WIDTH_ELSEWHERE = 120
/** Countdowns go down once a second, and a look costs a millisecond. */
const TICK_MS = 1_000
const LAST_LINE_BYTES = 4 * 1024

export function addStatus(root: Command, enter: Enter): void {
  root
    .command('status')
    .description('What is going on: what is stuck, running and waiting, who holds what.')
    .option('--watch', 'go on looking, until q or Ctrl-C')
    .addHelpText('after', HELP)
    .action(async (_, self: Command) => {
      const { watch, ...options } = self.optsWithGlobals<{ watch?: boolean }>()
      await status(enter(options), watch ?? false)
    })
}

/** Live in a terminal, once elsewhere, as data with `--json`. */
async function status(context: Context, isLive: boolean): Promise<void> {
  const now = await context.call(stats.now, { limit: ROWS_MAX })
  if (context.json) return show(context, 'now.get', now)
  const store = `${context.place.kind} ${context.place.path}`
  const said = { store, lastLine: lastLineIn(context) }
  if (isLive && io().stdout.isTTY && io().stdin.isTTY) {
    const screen = new Screen()
    const look = async () => context.call(stats.now, { limit: ROWS_MAX })
    return screen.show(TICK_MS, async (width, height) =>
      frame({ ...said, now: await look(), width, height }),
    )
  }
  const width = io().stdout.columns || Number(context.env['COLUMNS']) || WIDTH_ELSEWHERE
  const lines = frame({ ...said, now, width, height: undefined })
  print(
    lines
      .map((line) => line.trimEnd())
      .join('\n')
      .trimEnd(),
  )
}

/** With a token the files of the store are not ours to read. */
function lastLineIn(context: Context): (run_id: string) => string {
  if (context.env['LEASEHOLD_TOKEN']) return () => ''
  const folder = folderOf(context.place)
  return (run_id) => {
    const output = readOutput(folder, run_id, {}, LAST_LINE_BYTES)
    return (
      output?.text
        .trimEnd()
        .split(/\r?\n|\r/)
        .at(-1) ?? ''
    )
  }
}

const HELP = `
What is stuck comes first, with its root cause and what can be done. Without a terminal --watch
prints once; with --json, as data.

Examples:
  leasehold status
  leasehold status --watch
  leasehold --json status | jq '.locks[] | select(.waiters | length > 0)'`
