import { existsSync } from 'node:fs'
import { Refusal } from '../../../core/refusal.ts'
import { step } from '../../../machine/test_build.ts'
import { systemCode } from '../../../machine/errors.ts'
import { exportNotes } from './exports.ts'
import { list, readNamed, recover } from './files.ts'
import { Folder, type Synced, type SyncPlan } from './folder.ts'
import { importFiles } from './imports.ts'
import { readIndex, writeIndex } from './index_file.ts'

/** More files than this, and none of them is left: somebody may have emptied the folder. */
const MISSING_MAX = 1

/**
 * Makes a folder and the store say the same, both ways. Files that changed are put on the version
 * that they were exported from; notes that changed are written to files that did not. The caller
 * holds the lock of the folder. If a sync is killed at any moment, the next one goes on from there.
 */
export async function sync(plan: SyncPlan, allowDeletions: boolean): Promise<Synced> {
  try {
    return await syncOnce(plan, allowDeletions)
  } catch (error) {
    throw folderRefusal(error, plan.dir)
  }
}

async function syncOnce(plan: SyncPlan, allowDeletions: boolean): Promise<Synced> {
  const index = await readIndex(plan.dir, plan.store)
  const folder = new Folder(plan, index.entries)
  step('sync:begun')
  await recover(plan.dir, (path, hash) => folder.entries.get(path)?.hash === hash)
  await look(folder)
  refuseEmptied(folder, allowDeletions)
  await importFiles(folder, await folder.notes())
  await writeIndex(plan.dir, plan.store, index)
  await exportNotes(folder, await folder.notes())
  step('sync:exported')
  await writeIndex(plan.dir, plan.store, index)
  return folder.result
}

/** What the operating system said about the folder, as a refusal that says what to do. */
function folderRefusal(error: unknown, dir: string): unknown {
  const said = (error as Error).message
  if (systemCode(error) === 'ENOENT' && !existsSync(dir)) {
    return new Refusal('not_found', `The folder ${dir} is gone`, {
      next: 'Bring it back and sync again. No note was deleted for that.',
    })
  }
  switch (systemCode(error)) {
    case undefined:
      return error
    case 'ENOSPC':
    case 'EDQUOT':
      return new Refusal('unavailable', `The disk is full: ${dir} cannot be synced (${said})`, {
        next: 'Free some space and sync again. No file was lost or written by half.',
      })
    default:
      return new Refusal('unavailable', `${dir} cannot be synced: ${said}`, {
        next: 'See to it that this login may read and write all of the folder, then sync again.',
      })
  }
}

async function look(folder: Folder): Promise<void> {
  const { dir } = folder.plan
  for (const path of list(dir)) {
    const found = await readNamed(dir, path)
    if (typeof found === 'string') folder.skip(path, found)
    else if (found) folder.found.set(path, found)
  }
}

function refuseEmptied(folder: Folder, allowDeletions: boolean): void {
  const known = [...folder.entries].filter(([, each]) => !each.sibling && folder.isAsked(each))
  const missing = known.filter(([path]) => !folder.found.has(path)).length
  if (allowDeletions || missing <= MISSING_MAX || missing < known.length) return
  const { dir } = folder.plan
  throw new Refusal('invalid', `All ${missing} files that were synced to ${dir} are gone`, {
    next: 'Bring them back, or delete the notes too: --allow-deletions',
    details: { missing },
  })
}
