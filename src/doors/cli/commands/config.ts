import { utimesSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../../core/refusal.ts'
import { CONFIG_FILE, folderOf } from '../../../stores/open.ts'
import type { Enter } from './operations.ts'
import type { Context } from '../context.ts'
import { isBound, refuseWithToken } from '../family.ts'
import { isConfirmed, isTerminal } from '../confirm.ts'
import { print } from '../show/show.ts'
import { io } from '../../io.ts'

/** `config approve`: a person looks at what config.json names, and lets it count. */
export function addConfig(config: Command, enter: Enter): void {
  config
    .command('approve')
    .description('Show what config.json names (programs, addresses, folders), and approve it.')
    .option('--yes', 'approve without being asked')
    .action(async ({ yes = false }: { yes?: boolean }, self: Command) => {
      const context = enter(self.optsWithGlobals())
      await approveHere(context, yes)
    })
}

/** On a terminal, before a server is started: asks once about what nobody has approved yet. */
export async function offerApproval(context: Context): Promise<void> {
  const { readConfig, waitingText } = await import('../../../daemon/main.ts')
  const { waiting } = readConfig(folderOf(context.place), context.env)
  if (waiting.length === 0) return
  if (isTerminal() && !context.json) await approveHere(context, false)
  else io().stderr.write(`leasehold: ${waitingText(waiting)}\n`)
}

async function approveHere(context: Context, yes: boolean): Promise<void> {
  const { env } = context
  refuseWithToken(env)
  if (env['LEASEHOLD_RUN'] || isBound(context.family())) throw forPeople()
  const { approve, approvedFor, guardedIn, readSaid } = await import('../../../daemon/main.ts')
  const folder = folderOf(context.place)
  const said = readSaid(folder, env)
  const [before, after] = [approvedFor(folder, env), said].map(guardedIn)
  const lines = difference(linesOf(before!), linesOf(after!))
  if (lines.length === 0) return say(context, true, 'All that config.json names is approved.')
  if (!context.json) print(lines.join('\n'))
  if (!yes && !io().stdin.isTTY) throw forPeople()
  if (!yes && !(await isConfirmed('May Leasehold use all this with your rights?'))) {
    return say(context, false, 'Nothing was approved.')
  }
  approve(folder, env, said)
  // A running server watches this file: it looks again, and finds what was approved.
  utimesSync(join(folder, CONFIG_FILE), new Date(), new Date())
  say(context, true, `${pc.green('approved')} for ${folder}`)
}

function say({ json }: Context, approved: boolean, text: string): void {
  print(json ? JSON.stringify({ approved }) : text)
}

function forPeople(): Refusal {
  return new Refusal('forbidden', 'Only a person can approve what Leasehold may start', {
    next: 'On a terminal: leasehold config approve. In your own script: --yes',
  })
}

/** Each on a line of its own, so that two versions can be compared. */
const linesOf = (all: Map<string, { value: unknown }>) =>
  [...all].map(([name, { value }]) => `${name} = ${JSON.stringify(value)}`)

const difference = (before: string[], after: string[]) => [
  ...before.filter((line) => !after.includes(line)).map((line) => pc.red(`- ${line}`)),
  ...after.filter((line) => !before.includes(line)).map((line) => pc.green(`+ ${line}`)),
]
