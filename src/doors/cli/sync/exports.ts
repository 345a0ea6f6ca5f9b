import { keyOf } from '../../../core/rows.ts'
import * as memory from '../../../operations/memory.ts'
import type { ShownMemory, ShownVersion } from '../../../operations/memory_show.ts'
import { sha256 } from '../../../machine/digest.ts'
import { create, replace } from './files.ts'
import type { Folder, NotesByKey } from './folder.ts'
import { type Note, render } from './front.ts'
import type { Entry } from './index_file.ts'
import { pathOf, siblingPath } from './names.ts'

/** Writes what changed in the store to files that did not, and takes away what is gone. */
export async function exportNotes(folder: Folder, notes: NotesByKey): Promise<void> {
  const { entries, plan } = folder
  const paths = new Map<string, string>()
  for (const [path, entry] of entries) {
    if (!entry.sibling) paths.set(keyOf(entry.scope, entry.key), path)
  }
  const small = new Set([...entries.keys()].map((each) => each.toLowerCase()))
  for (const [id, { scope, key, version }] of notes) {
    const path = paths.get(id) ?? pathOf(scope, key, (each) => small.has(each.toLowerCase()))
    small.add(path.toLowerCase())
    if (entries.get(path)?.seen === version || folder.waiting.has(path)) continue
    const note = await folder.ask(path, plan.call(memory.get, { scope, key }))
    if (note) await exportNote(folder, path, version, note)
  }
  for (const [path, entry] of [...entries]) {
    const isGone = !notes.has(keyOf(entry.scope, entry.key))
    if (isGone && folder.isAsked(entry)) await withdraw(folder, path, entry)
  }
}

async function exportNote(
  folder: Folder,
  path: string,
  seen: number,
  note: ShownMemory,
): Promise<void> {
  const { entries } = folder
  const heads: ShownVersion[] = [note, ...note.siblings]
  const alive = heads.filter(({ content }) => content !== null)
  // A file stays with what it says as long as that is one of those that disagree.
  const was = entries.get(path)?.version
  const own = alive.find(({ version }) => version === was) ?? alive[0]
  if (!own) return
  const { scope, key } = note
  await write(folder, path, { scope, key, seen, sibling: false }, own)
  const siblings = alive.filter((each) => each !== own)
  for (const each of siblings) {
    const about = { scope, key, seen, sibling: true }
    await write(folder, siblingPath(path, each.version), about, each)
  }
  const kept = new Set(siblings.map(({ version }) => siblingPath(path, version)))
  for (const [other, entry] of [...entries]) {
    const isOf = entry.sibling && entry.scope === scope && entry.key === key
    if (isOf && !kept.has(other)) await withdraw(folder, other, entry)
  }
}

const SAVED = 'it was saved just now; the next sync looks at it'
const TAKEN = 'something else is in its place, and is left alone'

async function write(
  folder: Folder,
  path: string,
  about: Pick<Entry, 'scope' | 'key' | 'seen' | 'sibling'>,
  shown: ShownVersion,
): Promise<void> {
  const { entries, found, result, plan } = folder
  const entry = entries.get(path)
  const here = found.get(path)
  if (entry?.version === shown.version && here) {
    entries.set(path, { ...entry, seen: about.seen })
    return
  }
  if (folder.isStrange(path)) return
  const text = render(noteOf(about, shown))
  const done = here
    ? entry?.hash === here.hash && (await replace(plan.dir, path, here.hash, text))
    : await create(plan.dir, path, text)
  if (!done) return folder.skip(path, here ? SAVED : TAKEN)
  const hash = sha256(text)
  found.set(path, { path, text, hash })
  entries.set(path, { ...about, version: shown.version, hash })
  result.exported.push(path)
}

async function withdraw(folder: Folder, path: string, entry: Entry): Promise<void> {
  const { entries, found, result, plan } = folder
  if (folder.isStrange(path)) return
  const here = found.get(path)
  const isSame = here?.hash === entry.hash
  const done = !here || (isSame && (await replace(plan.dir, path, here.hash, null)))
  if (!done) return folder.skip(path, SAVED)
  entries.delete(path)
  found.delete(path)
  if (here) result.removed.push(path)
}

function noteOf({ scope, key }: { scope: string; key: string }, shown: ShownVersion): Note {
  const { version, author, confidence, tags, created_at, expires_at } = shown
  const content = shown.content ?? ''
  return {
    ...{ scope, key, version, author, confidence, tags, content },
    updated: created_at,
    expires: expires_at,
  }
}
