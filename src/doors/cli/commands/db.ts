import { existsSync, renameSync } from 'node:fs'
import type { Command } from 'commander'
import pc from 'picocolors'
import { listed } from '../../../core/quote.ts'
import { Refusal } from '../../../core/refusal.ts'
import {
  backupStore,
  checkStore,
  raiseEpoch,
  refuseRestore,
  restoreLastGoodState,
  restoreStore,
  sizeStore,
  isUnused,
  type StoreSizes,
  takeBack,
} from '../../../stores/care.ts'
import { type Copied, copyStore, type CopyProgress, shownAt } from '../../../stores/copy/copy.ts'
import { movedTo } from '../../../stores/copy/moved.ts'
import { type Place, placeOf } from '../../../stores/open.ts'
import type { RestoreReport } from '../../../stores/port.ts'
import type { Enter } from './operations.ts'
import { isConfirmed, isTerminal } from '../confirm.ts'
import type { Context } from '../context.ts'
import { refuseAdmin, refuseWithToken } from '../family.ts'
import { print } from '../show/show.ts'
import { addPrune, sizesText } from './prune.ts'
import { io } from '../../io.ts'

/** Care for the store itself. Not operations: they need the files, so they have no other door. */
export function addDatabase(db: Command, enterAny: Enter): void {
  const enter: Enter = (options) => {
    const context = enterAny(options)
    refuseWithToken(context.env)
    return context
  }
  addPrune(db, enter)
  addCopy(db, enter)
  db.command('migrate')
    .description('Migrate the store to this version, or create it.')
    .action(async (_, self: Command) => {
      const context = enter(self.optsWithGlobals())
      await context.store().write(() => undefined)
      say(
        context,
        { migrated: true, path: context.place.path },
        `up to date: ${context.place.path}`,
      )
    })
  db.command('check')
    .description('Verify the store: its pages, its chain of events, and that its rows agree.')
    .action(async (_, self: Command) => {
      const context = enter(self.optsWithGlobals())
      if (isUnused(context.place)) {
        say(
          context,
          { ok: true, problems: [], events: 0 },
          'There is no store yet: nothing to check.',
        )
        return
      }
      const checked = await checkStore(context.place)
      report(context, checked, checked.ok ? await sizeStore(context.place) : undefined)
    })
  db.command('backup')
    .description('Write a consistent copy while others keep working, and check it.')
    .argument('[file]', 'where to write it (default: backups/ in the state folder)')
    .option('--yes', 'write over a file that is there, without being asked')
    .action(async (file: string | undefined, { yes }: Yes, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const made = await backedUp(context, file, yes)
      const { head: _head, ...shown } = made
      say(context, shown, `${pc.green('backed up')} ${made.events} events to ${made.backup}`)
    })
  db.command('restore')
    .description('Replace the store with a backup; what it replaces is kept, and fences rise.')
    .argument('[backup]', 'a file made by db backup')
    .option('--last-good', 'file store: go on from the newest state that is not damaged')
    .option('--raise-epoch', 'PostgreSQL: after pg_restore; leases end, and fences rise')
    .option('--take-back', 'reopen a store that db copy has closed; leases end, fences rise')
    .option('--yes', 'do not ask first; without a terminal nothing is restored unless you say so')
    .action(async (from: string | undefined, options: RestoreOptions, self: Command) => {
      const context = enter(self.optsWithGlobals())
      refuseAdmin(context.family(), 'db restore')
      const restore = restoring(context, from, options)
      if (await isGoing(options.yes, context)) report(context, await restore())
    })
}

interface Yes {
  yes?: boolean
}

/** A person is asked before a store is replaced; a script has to say so (`invalid`). */
async function isGoing(yes: boolean | undefined, { place, json }: Context): Promise<boolean> {
  const what = `What ${place.path} holds is replaced, and leases end unless their command runs`
  if (yes || isUnused(place)) return true
  if (json || !isTerminal()) {
    throw new Refusal('invalid', `${what}; nobody has said that this is meant`, {
      next: 'If it is, say so: the same command with --yes. Of a backup the former store is kept.',
    })
  }
  if (await isConfirmed(`${what}. Go on?`)) return true
  print('Nothing was changed.')
  return false
}

/** A file that is there is written over only if somebody says so. */
async function backedUp({ place, ...asking }: Context, file: string | undefined, yes = false) {
  const isThere = file !== undefined && existsSync(file)
  if (isThere) refuseAdmin(asking.family(), 'A backup over a file')
  const isMeant = isThere && (yes || (isTerminal() && (await isConfirmed(`Write over ${file}?`))))
  if (!isMeant) return backupStore(place, file, new Date())
  const fresh = `${file}.${process.pid}.new`
  const made = await backupStore(place, fresh, new Date())
  renameSync(fresh, file)
  return { ...made, backup: file }
}

function addCopy(db: Command, enter: Enter): void {
  db.command('copy')
    .description('Copy a whole store into an empty one of any kind, with its fences and events.')
    .requiredOption('--from <store>', 'sqlite:PATH, file:FOLDER or postgres://…, not in use')
    .requiredOption('--to <store>', 'an address like that of --from; empty, or not there yet')
    .option('--keep-source', 'leave the source open; otherwise it is closed when all is copied')
    .action(async (options: { from: string; to: string; keepSource?: true }, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const from = storeAt(context, '--from', options.from)
      const to = storeAt(context, '--to', options.to)
      const isWatched = io().stderr.isTTY && !context.json
      const copied = await copyStore(from, to, {
        ...(isWatched && { progress: showProgress() }),
        keep_source: options.keepSource ?? false,
      }).finally(() => isWatched && io().stderr.write(CLEAR))
      say(context, copied, copiedText(copied, from, to))
    })
}

/** Refuses (`invalid`) what is no store, without repeating it: a password may be in it. */
function storeAt({ env }: Context, option: string, text: string): Place {
  const isKnown = /^(?:sqlite|file):/.test(text) || URL.canParse(text)
  if (isKnown && /^(?:sqlite|file|postgres|postgresql):/i.test(text)) {
    return placeOf({ ...env, LEASEHOLD_STORE: text }, io().cwd())
  }
  throw new Refusal('invalid', `${option} is not the address of a store`, {
    next: 'Use sqlite:PATH, file:FOLDER or postgres://USER:PASSWORD@HOST/DATABASE.',
  })
}

const PROGRESS_EVERY_MS = 100
/** Back to the start of the line, and nothing on it. */
const CLEAR = '\r\u001B[K'

/** One line that is written over and over. */
function showProgress(): CopyProgress {
  let shown_ms = 0
  return (step, part, rows) => {
    const now_ms = performance.now()
    if (now_ms - shown_ms < PROGRESS_EVERY_MS) return
    shown_ms = now_ms
    io().stderr.write(`${CLEAR}${step} ${part} ${rows}`)
  }
}

function leftText(source: Copied['source']): string {
  if (source === 'closed') {
    return 'The source is closed, and tells its users so. To go on with the copy:'
  }
  const why = source === 'kept' ? '' : ` It could not be closed: ${source.open}.`
  return `The source is as it was.${why} Let nobody use both. To go on with the copy:`
}

function copiedText({ rows, events, shift_ms, source }: Copied, from: Place, to: Place): string {
  const counts = Object.entries(rows).map(([table, count]) => `${table} ${count}`)
  const shift = shift_ms === 0 ? '' : `\ntimes are by another clock now: ${shift_ms} ms were added`
  return `${pc.green('copied and compared')}: ${[...counts, `event ${events}`].join(', ')}${shift}
${leftText(source)}
  was  ${shownAt(from)}
  set  LEASEHOLD_STORE=${shownAt(to)}`
}

interface RestoreOptions extends Yes {
  takeBack?: boolean
  lastGood?: boolean
  raiseEpoch?: boolean
}

/** What is to be done, where it can be: nobody is asked about anything else. */
function restoring(
  { place }: Context,
  from: string | undefined,
  options: RestoreOptions,
): () => Promise<RestoreReport> {
  if (options.takeBack) return () => takeBack(place)
  if (options.raiseEpoch) return () => raiseEpoch(place)
  if (options.lastGood) return () => restoreLastGoodState(place)
  if (from !== undefined) {
    refuseRestore(place, from)
    return () => restoreStore(place, from)
  }
  throw new Refusal('invalid', 'Say which backup to restore', {
    next: 'leasehold db restore BACKUP, or --last-good for a file store',
  })
}

function report(context: Context, found: RestoreReport, sizes?: StoreSizes): void {
  const { head: _, hindered, ...shown } = found
  if (hindered) throw hindered
  if (!found.ok) {
    throw new Refusal('damaged', `The store is damaged: ${found.problems.join('; ')}`, {
      next: 'Restore a backup: leasehold db restore BACKUP. Nothing was changed by this check.',
      details: { ...shown },
    })
  }
  const head = found.head && `fence epoch ${found.head.epoch}, ${found.events} events in the chain`
  const moved_to = found.head && movedTo(found.head)
  const moved = moved_to ? `\nIt was copied to ${moved_to}, and is closed.` : ''
  const result = { ...shown, epoch: found.head?.epoch, ...(moved_to && { moved_to }), ...sizes }
  const size = sizes ? `\n${sizesText(sizes)}` : ''
  const kept = found.kept?.length
    ? `\nWhat was there before is kept in ${listed(found.kept, found.kept.length)}`
    : ''
  say(context, result, `${pc.green('sound')}: ${head ?? 'empty'}${moved}${size}${kept}`)
}

function say(context: Context, result: unknown, sentence: string): void {
  print(context.json ? JSON.stringify(result) : sentence)
}
