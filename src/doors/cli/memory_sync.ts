import { realpathSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../core/refusal.ts'
import * as locks from '../../operations/locks.ts'
import { sha256 } from '../../stores/digest.ts'
import { host, ownProcess } from '../../stores/process.ts'
import { keepRenewing } from '../../daemon/renewing.ts'
import { visible } from '../unseen.ts'
import type { Enter } from './commands.ts'
import type { Context } from './context.ts'
import { print } from './show.ts'
import type { Synced } from './sync/folder.ts'
import { sync } from './sync/sync.ts'

const TTL_SECONDS = 60

interface SyncOptions {
  scope?: string
  allowDeletions?: boolean
}

/** A command of its own: it needs the folder, which is where the command runs. */
export function addMemorySync(memory: Command, enter: Enter): void {
  memory
    .command('sync')
    .description('Make a folder of Markdown files and the notes say the same, both ways.')
    .argument('<dir>', 'the folder; it must exist')
    .option('--scope <scope>', 'only this scope (default: all)')
    .option('--allow-deletions', 'even if every file is gone: delete the notes')
    .addHelpText('after', HELP)
    .action(async (dir: string, options: SyncOptions, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const synced = await syncFolder(context, folderAt(dir), options)
      print(context.json ? JSON.stringify(synced) : linesOf(synced))
    })
}

const HELP = `
project/web/build.md is the note build of the scope project:web. A changed file becomes a new
version on the one it was exported from, a new file a new note, a removed file a deleted note. If
the note was changed meanwhile too, both are kept: the file stays as it is, and the other version
is written beside it as build.conflict-VERSION.md until the conflict is resolved.

Only one sync of a folder runs at a time. What was synced is remembered in .leasehold-sync.json.

Examples:
  leasehold memory sync notes/
  leasehold memory sync notes/ --scope project:web`

function folderAt(dir: string): string {
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Refusal('not_found', `There is no folder ${dir}`, { next: `Make it: mkdir ${dir}` })
  }
  return realpathSync(dir)
}

/** The address of the store, as far as a folder can belong to one. */
function storeIn({ place, env }: Context): string {
  return env['LEASEHOLD_TOKEN'] ? (env['LEASEHOLD_URL'] ?? 'server') : `${place.kind}:${place.path}`
}

/** Under a lock that names this process: it is free the moment this process is gone. */
async function syncFolder(context: Context, dir: string, options: SyncOptions): Promise<Synced> {
  const name = `leasehold:sync:${host}:${sha256(dir).slice(0, 12)}`
  const caller = { ...context.caller, process: ownProcess() }
  const grant = { names: [name], ttl_seconds: TTL_SECONDS, process: ownProcess() }
  const lease = await context.call(locks.acquire, grant, { caller }).catch((error: unknown) => {
    throw error instanceof Refusal && error.code === 'held' ? running(dir, error) : error
  })
  const fence = 'fence' in lease ? lease.fence : lease.items[0]!.fence
  let lost: string | undefined
  const stop = keepRenewing({
    ttl_ms: TTL_SECONDS * 1000,
    renew: () => context.call(locks.renew, { name, fence, request_id: undefined }, { caller }),
    lose: (why) => (lost = why),
  })
  const call: Context['call'] = (operation, input, how) => {
    if (lost === undefined) return context.call(operation, input, how)
    throw new Refusal('lease_expired', `The lock of this sync was lost: ${lost}`, {
      next: 'Sync again. What was done so far is no trouble.',
    })
  }
  try {
    const plan = { dir, store: storeIn(context), call, scope: options.scope }
    return await sync(plan, options.allowDeletions ?? false)
  } finally {
    stop()
    await context.call(locks.release, { name, fence }, { caller }).catch(() => undefined)
  }
}

function running(dir: string, { details }: Refusal): Refusal {
  const pid = details['pid'] as number | undefined
  return new Refusal('held', `Another sync of ${dir} is running (PID: ${pid ?? 'unknown'})`, {
    next: 'Wait until it has ended. If that process is gone, so is its lock: try again.',
    details,
  })
}

function linesOf(synced: Synced): string {
  const { imported, exported, removed, deleted, conflicts, skipped } = synced
  // Names of files are written by others too.
  const line = (what: string, path: string, more = '') => `${what} ${visible(path + more)}`
  const lines = [
    ...imported.map(({ path, version }) => line(pc.green('in'), path, ` (version ${version})`)),
    ...exported.map((path) => line(pc.green('out'), path)),
    ...deleted.map(({ path }) => line(pc.yellow('deleted'), path, ': its note')),
    ...removed.map((path) => line(pc.yellow('removed'), path, ': the note is gone')),
    ...conflicts.map(({ path, id }) => {
      return line(pc.red('conflict'), path, `: leasehold memory conflicts --id ${id}`)
    }),
    ...skipped.map(({ path, why }) => line(pc.yellow('skipped'), path, `: ${why}`)),
  ]
  return lines.join('\n') || 'All is the same already.'
}
