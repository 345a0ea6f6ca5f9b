import type { Command } from 'commander'
import { Refusal } from '../../../core/refusal.ts'
import { type Bound, DAY_MS } from '../../../core/retention.ts'
import { pruneRuns } from '../../../daemon/dispatch/run_care.ts'
import { compactStore, type StoreSizes } from '../../../stores/care.ts'
import { folderOf, storeExists } from '../../../stores/open.ts'
import { type Forgotten, forgetOld } from '../../../stores/writer/prune.ts'
import type { Enter } from './operations.ts'
import { print } from '../show/show.ts'
import { bytesText } from '../../reads/pen.ts'
import { durationOf } from '../values.ts'

interface Options {
  keep?: string
  olderThan?: string
  compact?: true
  dryRun?: true
}

/** Does now what a daemon does by itself from time to time. */
export function addPrune(db: Command, enter: Enter): void {
  db.command('prune')
    .description('Remove old rows, as retention in config.json says. See docs/retention.md.')
    .option('--keep <n>', 'keep at most this many events, whatever the configuration says')
    .option('--older-than <duration>', 'remove events that are older than this')
    .option('--compact', 'SQLite: give free space back to the disk; all other writers wait for it')
    .option('--dry-run', 'only show what would be removed')
    .action(async (options: Options, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const { place, json } = context
      const dry_run = options.dryRun ?? false
      const forgotten: Forgotten = {}
      if (storeExists(place)) {
        const store = context.store()
        const retention = {
          ...store.retention,
          events: eventBound(options, store.retention.events),
        }
        Object.assign(forgotten, await forgetOld(store, { retention, dry_run }))
        const rest = () => Promise.resolve()
        if (!dry_run) await pruneRuns(store, folderOf(place), retention.output, rest)
        if (options.compact && !dry_run) compactStore(place)
      }
      const { events: pruned = 0, ...others } = forgotten
      print(json ? JSON.stringify({ pruned, ...others, dry_run }) : sentence(forgotten, dry_run))
    })
}

function eventBound({ keep, olderThan }: Options, configured: Bound): Bound {
  const max = keep === undefined ? configured.max : Number(keep)
  if (max !== null && (!Number.isSafeInteger(max) || max < 0)) {
    throw new Refusal('invalid', `--keep is not a number of events: ${keep}`)
  }
  if (olderThan === undefined) return { ...configured, max }
  return { days: (durationOf(olderThan, '--older-than') * 1000) / DAY_MS, max }
}

function sentence(forgotten: Forgotten, dry_run: boolean): string {
  const parts = Object.entries({ events: 0, ...forgotten }).map(([kind, n]) => `${n} ${kind}`)
  return `${parts.join(', ')} ${dry_run ? 'would be forgotten' : 'forgotten'}`
}

/** What is in a store, the most first, and what would leave it. */
export function sizesText({ rows, bytes, free_bytes, to_forget }: StoreSizes): string {
  const most = Object.entries(rows)
    .filter(([, n]) => n > 0)
    .toSorted(([, a], [, b]) => b - a)
    .map(([table, n]) => `${table} ${n}`)
  const going = Object.entries(to_forget).map(([kind, n]) => `${kind} ${n}`)
  const next = going.length === 0 ? 'nothing' : going.join(', ')
  return `size: ${bytesText({ bytes, free_bytes })}
rows: ${most.join(', ')}
due to be forgotten: ${next}`
}
