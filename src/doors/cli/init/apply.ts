import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { step } from '../../../machine/test_build.ts'
import { makePrivateFolder } from '../../../machine/privacy.ts'
import { isSame, lookAt, putFile } from './files.ts'
import { Manifest } from './manifest.ts'
import { pendingIn, type Plan, refuseReadOnly } from './plan.ts'

/**
 * Writes what was planned, file by file: first what stood there goes into the manifest, then the
 * file is replaced. Killed anywhere, doing it again or undoing it gives what it would have given.
 */
export function applyPlan({ checkout, state, changes }: Plan): void {
  const pending = pendingIn(changes)
  if (pending.length === 0) return
  refuseReadOnly([state, ...pending.map(({ path }) => path)])
  const isNew = !existsSync(state)
  makePrivateFolder(state)
  const manifest = new Manifest(state, checkout.root, checkout.main)
  mkdirSync(manifest.folder, { recursive: true, mode: 0o700 })
  if (isNew) manifest.noteFolder(state)
  pending.forEach((change, i) => {
    const now = lookAt(change.path)
    // Somebody was faster than the answer to our question: their file is what we add to.
    const isAsPlanned = isSame(now, change.before)
    const last = isAsPlanned ? change : { ...change, before: now, after: change.part.put(now) }
    makeFolders(dirname(change.path), manifest)
    manifest.note(last)
    step(`init.noted.${i}`)
    putFile(last.path, last.after, manifest.folder)
    step(`init.written.${i}`)
  })
}

function makeFolders(folder: string, manifest: Manifest): void {
  if (existsSync(folder)) return
  makeFolders(dirname(folder), manifest)
  manifest.noteFolder(folder)
  mkdirSync(folder)
}
