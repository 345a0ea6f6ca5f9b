import { realpathSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { Refusal } from '../../../core/refusal.ts'
import { scopeOptional } from '../../../operations/memory_fields.ts'
import { parseInput } from '../../../operations/operation.ts'
import type { Enter } from './operations.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'
import { underLock } from '../sync/folder_lock.ts'
import { linesOf } from '../sync/report.ts'
import { sync } from '../sync/sync.ts'

interface SyncOptions {
  scope?: string
  allowDeletions?: boolean
}

/** A command of its own: it needs the folder, which is where the command runs. */
export function addMemorySync(memory: Command, enter: Enter): void {
  memory
    .command('sync')
    .description('Keep notes and a folder of Markdown files in sync, both ways.')
    .argument('<dir>', 'the folder; it must exist')
    .option('--scope <scope>', 'only this scope (default: all)')
    .option('--allow-deletions', 'delete the notes even if every file is gone')
    .addHelpText('after', HELP)
    .action(async (dir: string, options: SyncOptions, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const { scope } = scopeIn(options)
      const plan = { dir: folderAt(dir), store: storeIn(context), scope }
      const allowDeletions = options.allowDeletions ?? false
      const synced = await underLock(context, plan.dir, (call) =>
        sync({ ...plan, call }, allowDeletions),
      )
      print(context.json ? JSON.stringify(synced) : linesOf(synced) || SAME)
    })
}

const SAME = 'Already in sync.'

const HELP = `
project/web/build.md is the note build of the scope project:web. A changed file becomes a new
version on the one it was exported from, a new file a new note, a removed file a deleted note. If
the note was changed meanwhile too, both are kept: the file stays as it is, and the other version
is written beside it as build.conflict-VERSION.md until the conflict is resolved.

Only one sync of a folder runs at a time. What was synced is remembered in .leasehold-sync.json.

Examples:
  leasehold memory sync notes/
  leasehold memory sync notes/ --scope project:web`

function scopeIn({ scope }: SyncOptions): { scope?: string | undefined } {
  try {
    return parseInput({ scope: scopeOptional }, { scope })
  } catch (error) {
    const { message } = error as Error
    throw new Refusal('invalid', message, { next: 'For example: --scope project:web' })
  }
}

function folderAt(dir: string): string {
  if (statSync(dir, { throwIfNoEntry: false })?.isFile()) {
    throw new Refusal('invalid', `${dir} is a file, and notes are synced with a folder`, {
      next: 'Name the folder: leasehold memory sync notes/',
    })
  }
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Refusal('not_found', `There is no folder ${dir}`, { next: `Make it: mkdir ${dir}` })
  }
  return realpathSync(dir)
}

/** The address of the store, as far as a folder can belong to one. */
function storeIn({ place, env }: Context): string {
  return env['LEASEHOLD_TOKEN'] ? (env['LEASEHOLD_URL'] ?? 'server') : `${place.kind}:${place.path}`
}
