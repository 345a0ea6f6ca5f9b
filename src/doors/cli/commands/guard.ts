import { basename, dirname, join, resolve } from 'node:path'
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
  putBack,
  putGuarded,
} from '../../../machine/guarded.ts'
import { folderOf } from '../../../stores/open.ts'
import * as hooks from '../../../operations/hooks.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'
import { refuseAdmin } from '../family.ts'
import type { Enter } from './operations.ts'

/** Copies of reserved files: to look at, and to put back what another wrote over. */
export function addGuard(reserve: Command, enter: Enter): void {
  reserve
    .command('guard')
    .description('Copies of reserved files on this machine; put one back with --restore.')
    .argument('[paths...]', 'only these files')
    .option('--restore', 'put the copy in the place of the file; what another agent has: --force')
    .action(async (paths: string[], options: { restore?: true }, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const folder = folderOf(context.place)
      const wanted = paths.map(placeOf)
      const found = guardedIn(folder).filter(
        ({ path }) => wanted.length === 0 || wanted.includes(placeOf(path)),
      )
      if (options.restore) for (const each of found) refuseOthers(context.family(), each)
      const restored = options.restore ? await restore(context, found, paths) : []
      const items = found.map((each) => shown(folder, each, restored))
      print(context.json ? JSON.stringify({ items, next: null }) : text(items))
    })
}

/** The file itself is meant, and not what a link in its place leads to. */
const placeOf = (path: string) => join(realpathOf(dirname(resolve(path))), basename(path))

/** To write over what another works on is for a person. */
function refuseOthers(family: Family, { holder, name }: Guarded): void {
  if (holder === '' || family.agents.some((own) => admits(own, holder))) return
  refuseAdmin(family, `To restore ${word(name)}, which ${word(holder)} has reserved,`)
}

/** What another wrote over, else what the holder left. */
const copyOf = ({ lost, copy }: Guarded) => lost ?? copy

async function restore(context: Context, found: Guarded[], paths: string[]): Promise<Guarded[]> {
  const folder = folderOf(context.place)
  if (paths.length === 0) {
    throw new Refusal('invalid', '--restore wants to know which files', {
      next: 'Name them: leasehold reserve guard PATH --restore',
    })
  }
  const copies = found.flatMap((record) => {
    const copy = copyOf(record)
    const bytes = copy === null ? undefined : copyNamed(folder, copy)
    return bytes ? [{ record, copy, bytes }] : []
  })
  // All or nothing: none is written before each was found free, or the caller's own.
  const records = copies.map(({ record }) => record)
  const { process } = context.caller
  for (const { checkout, project } of new Map(
    records.map((each) => [whereOf(each), each]),
  ).values()) {
    const here = records.filter((each) => each.checkout === checkout && each.project === project)
    const where = { checkout, ...(project !== null && { project }), process }
    await context.call(hooks.restore, { ...where, paths: here.map(({ name }) => name) })
  }
  return copies.map(({ record, copy, bytes }) => {
    putBack(record.path, bytes)
    // As it was left: nobody has to be told of this change.
    const { seen, digest } = contentOf(record.path)
    const { lost: _, ...rest } = record
    putGuarded(folder, { ...rest, seen, digest, copy })
    return record
  })
}

const whereOf = ({ checkout, project }: Guarded) => JSON.stringify([checkout, project])

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
