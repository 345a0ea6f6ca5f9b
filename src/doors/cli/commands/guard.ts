import { resolve } from 'node:path'
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { admits } from '../../../core/caller.ts'
import { word } from '../../../core/quote.ts'
import { Refusal } from '../../../core/refusal.ts'
import type { Family } from '../../../machine/family.ts'
import { realpathOf } from '../../../machine/checkout.ts'
import {
  contentOf,
  copyNamed,
  type Guarded,
  guardedIn,
  putGuarded,
} from '../../../machine/guarded.ts'
import { folderOf } from '../../../stores/open.ts'
import { print } from '../show/show.ts'
import { refuseAdmin } from '../family.ts'
import type { Enter } from './operations.ts'

/** Copies of reserved files: to look at, and to put back what another wrote over. */
export function addGuard(reserve: Command, enter: Enter): void {
  reserve
    .command('guard')
    .description('Copies of reserved files on this machine; put one back with --restore.')
    .argument('[paths...]', 'only these files')
    .option('--restore', 'write the copy over the file')
    .action((paths: string[], options: { restore?: true }, self: Command) => {
      const { place, json, ...asking } = enter(self.optsWithGlobals())
      const folder = folderOf(place)
      const wanted = paths.map((path) => realpathOf(resolve(path)))
      const found = guardedIn(folder).filter(
        ({ path }) => wanted.length === 0 || wanted.includes(realpathOf(path)),
      )
      if (options.restore) for (const each of found) refuseOthers(asking.family(), each)
      const restored = options.restore ? restore(folder, found, paths) : []
      const items = found.map((each) => shown(folder, each, restored))
      print(json ? JSON.stringify({ items, next: null }) : text(items))
    })
}

/**
 * To write over what another works on is for a person. An agent may take back what was noticed as
 * written over it, as long as the holder has not gone on from there.
 */
function refuseOthers(family: Family, record: Guarded): void {
  const { holder, name, lost, copy, path, digest } = record
  const isOwn = holder === '' || family.agents.some((own) => admits(own, holder))
  const isTakenBack = lost !== undefined && copy === null && contentOf(path).digest === digest
  if (isOwn || isTakenBack) return
  refuseAdmin(family, `To restore ${word(name)}, which ${word(holder)} has reserved,`)
}

/** What another wrote over, else what the holder left. */
const copyOf = ({ lost, copy }: Guarded) => lost ?? copy

function restore(folder: string, found: Guarded[], paths: string[]): Guarded[] {
  if (paths.length === 0) {
    throw new Refusal('invalid', '--restore wants to know which files', {
      next: 'Name them: leasehold reserve guard PATH --restore',
    })
  }
  return found.filter((record) => {
    const copy = copyOf(record)
    const bytes = copy === null ? undefined : copyNamed(folder, copy)
    if (copy === null || !bytes) return false
    writeFileSync(record.path, bytes)
    // As it was left: nobody has to be told of this change.
    const { seen, digest } = contentOf(record.path)
    const { lost: _, ...rest } = record
    putGuarded(folder, { ...rest, seen, digest, copy })
    return true
  })
}

function shown(folder: string, record: Guarded, restored: Guarded[]) {
  const { name, holder, digest, lost } = record
  const copy = copyOf(record)
  return {
    path: name,
    holder: holder || null,
    has_copy: copy !== null && copyNamed(folder, copy) !== undefined,
    changed: lost !== undefined || contentOf(record.path).digest !== digest,
    restored: restored.includes(record),
  }
}

function text(items: ReturnType<typeof shown>[]): string {
  if (items.length === 0) return 'No copy of a reserved file is kept here.'
  return items
    .map(({ path, holder, has_copy, changed, restored }) => {
      const what = restored ? 'restored' : changed ? 'changed by another' : 'as it was left'
      const whose = holder === null ? 'free now' : `reserved by ${holder}`
      return `${path}: ${what}, ${whose}${has_copy ? '' : ', no copy'}`
    })
    .join('\n')
}
