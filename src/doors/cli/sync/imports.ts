import { isRefusal } from '../../../core/refusal.ts'
import { keyOf } from '../../../core/rows.ts'
import { step } from '../../../machine/test_build.ts'
import * as memory from '../../../operations/memory.ts'
import type { ShownVersion } from '../../../operations/memory_show.ts'
import { sha256 } from '../../../machine/digest.ts'
import type { FoundFile } from './files.ts'
import type { Folder, NotesByKey } from './folder.ts'
import { parse, type Said } from './front.ts'
import type { Entry } from './index_file.ts'
import { nameIn } from './names.ts'

interface Named {
  scope: string
  key: string
}

/** Puts what changed in the folder into the store, each on the version it was exported from. */
export async function importFiles(folder: Folder, notes: NotesByKey): Promise<void> {
  for (const found of folder.found.values()) {
    await importFile(folder, found)
    step('sync:put')
  }
  for (const [path, entry] of [...folder.entries]) await missFile(folder, path, entry, notes)
}

async function importFile(folder: Folder, found: FoundFile): Promise<void> {
  const { path } = found
  const { entries, result, plan } = folder
  const before = entries.get(path)
  if (before?.hash === found.hash) return
  const said = parse(found.text)
  if (typeof said === 'string') return folder.skip(path, said)
  const entry = before ?? renamed(folder, path, said)
  if (entry?.hash === found.hash) return
  if (entry && !isAbout(said, entry)) return folder.skip(path, otherNote(said))
  const name = entry ?? nameOf(folder, path, said)
  if (!name || !folder.isAsked(name)) return
  const { scope, key } = name
  const known = await versionSaid(folder, said, entry, name)
  const about = { scope, key, seen: 0, hash: found.hash, sibling: entry?.sibling ?? false }
  if (known && isSame(said, known)) {
    entries.set(path, { ...about, version: known.version })
    return
  }
  const based_on = known?.version ?? entry?.version
  // Asked again after a crash, it is the same ask: one version, and the same answer.
  const request_id = sha256(keyOf('sync', plan.dir, path, String(based_on), found.hash))
  const input = { scope, key, ...contentOf(said), based_on, request_id }
  const put = await folder.ask(path, plan.call(memory.put, input))
  if (!put) return
  // A merge is not what the file says: it is written there next.
  const version = put.conflict?.status === 'merged' ? put.conflict.theirs : put.version
  entries.set(path, { ...about, version })
  if (put.written) result.imported.push({ path, scope, key, version })
  if (put.conflict?.status === 'open') result.conflicts.push({ path, id: put.conflict.id })
}

/** Whether a file may be of this note: what it does not say of itself, it does not deny. */
const isAbout = (said: Said, { scope, key }: Named) =>
  (said.scope ?? scope) === scope && (said.key ?? key) === key

const otherNote = ({ scope, key }: Said) =>
  `its front matter says that it is another note (${[scope, key].filter(Boolean).join(' ')}): ` +
  'change that back, or move the file away'

/** Whether a version says all that a file says. */
function isSame({ content, tags, confidence }: Said, version: ShownVersion): boolean {
  const sorted = (each: string[]) => [...new Set(each)].toSorted().join('\n')
  return (
    content === version.content &&
    sorted(tags ?? version.tags) === sorted(version.tags) &&
    (confidence ?? version.confidence) === version.confidence
  )
}

/**
 * A file may say another version than was synced here: a sync was killed before it could write
 * that down, or the file came from elsewhere, by git for example. Then that is what it is based
 * on; and if it says just what that version says, it is no change, only old.
 */
async function versionSaid(
  { plan }: Folder,
  { version }: Said,
  entry: Entry | undefined,
  { scope, key }: Named,
): Promise<ShownVersion | undefined> {
  if (version === undefined || version === entry?.version) return undefined
  return plan.call(memory.get, { scope, key, version }).catch((error: unknown) => {
    if (isRefusal(error, 'not_found')) return undefined
    throw error
  })
}

/** The file of a note under a new name: the note is the same. */
function renamed(folder: Folder, path: string, { scope, key }: Said): Entry | undefined {
  for (const [other, entry] of folder.entries) {
    if (entry.scope !== scope || entry.key !== key || entry.sibling) continue
    if (folder.found.has(other)) continue
    folder.entries.delete(other)
    folder.entries.set(path, entry)
    return entry
  }
  return undefined
}

function nameOf(folder: Folder, path: string, said: Said): Named | undefined {
  const named = nameIn(path)
  const key = said.key ?? named?.key
  const scope = said.scope ?? named?.scope
  if (key === undefined || scope === undefined) {
    folder.skip(path, 'neither its name nor its front matter says which note it is')
    return undefined
  }
  for (const [other, entry] of folder.entries) {
    if (entry.scope !== scope || entry.key !== key || entry.sibling) continue
    folder.skip(path, `${other} is the file of this note already`)
    return undefined
  }
  return { scope, key }
}

/** A file that was synced is gone: so is its note, unless that says something else by now. */
async function missFile(
  folder: Folder,
  path: string,
  entry: Entry,
  notes: NotesByKey,
): Promise<void> {
  const { found, entries, result, plan } = folder
  if (found.has(path) || !folder.isAsked(entry)) return
  // Something is there that we cannot read: that was reported, and it is no deletion.
  if (folder.isSkipped(path) || folder.isStrange(path)) return
  if (plan.isGone?.(path) === false) return void folder.waiting.add(path)
  entries.delete(path)
  const note = notes.get(keyOf(entry.scope, entry.key))
  // Two versions that disagree are settled by a resolution, not by removing a file: it comes back.
  if (entry.sibling || note?.conflict) return lookAgain(folder, entry)
  if (!note) return
  const { scope, key, version: based_on } = entry
  const request_id = sha256(keyOf('sync', plan.dir, path, String(based_on), 'gone'))
  const input = { scope, key, based_on, request_id }
  const done = await folder.ask(path, plan.call(memory.remove, input))
  if (done?.conflict?.status === 'open') result.conflicts.push({ path, id: done.conflict.id })
  else if (done) result.deleted.push({ path, scope, key })
}

/** Has all files of a note looked at, whether or not the note has changed. */
function lookAgain({ entries }: Folder, { scope, key }: Named): void {
  for (const [path, entry] of entries) {
    if (entry.scope === scope && entry.key === key) entries.set(path, { ...entry, seen: 0 })
  }
}

function contentOf({ content, confidence, tags, expires }: Said) {
  const left_ms = expires === undefined ? Number.NaN : Date.parse(expires) - Date.now()
  return {
    content,
    ...(confidence !== undefined && { confidence }),
    ...(tags !== undefined && { tags }),
    ...(left_ms > 1000 && { ttl_seconds: Math.round(left_ms / 1000) }),
  }
}
