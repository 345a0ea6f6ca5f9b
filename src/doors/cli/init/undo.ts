import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { KINDS } from '../../../agents/kinds.ts'
import { step } from '../../../machine/test_build.ts'
import { systemCode } from '../../../machine/errors.ts'
import { type InitCheckout, shownPath } from './checkout.ts'
import { type FileState, isInside, isSame, lookAt, putFile } from './files.ts'
import { Manifest } from './manifest.ts'
import type { InitPart } from './part.ts'
import { partsOf, stateOf } from './parts.ts'
import { placeOfPart, refuseReadOnly } from './plan.ts'
import { retiredParts } from './retired.ts'

type UndoAction = 'delete' | 'restore' | 'take out' | 'leave'

export interface Undoing {
  path: string
  shown: string
  now: FileState
  after: FileState
  action: UndoAction
  why: string
}

export interface UndoPlan {
  checkout: InitCheckout
  state: string
  manifest: Manifest
  undoings: Undoing[]
}

/**
 * What to go back to, file by file: the very bytes that stood there, or, where others have changed
 * the file since, what they made of it without our part. Looks only.
 */
export function planUndo(checkout: InitCheckout): UndoPlan {
  const state = stateOf(checkout)
  const manifest = new Manifest(state, checkout.root, checkout.main)
  const isShared = manifest.hasOthers()
  const parts = new Map<string, InitPart[]>()
  const left = new Set<string>()
  const known = [...partsOf(checkout, [...KINDS]), ...retiredParts(checkout.root)]
  for (const part of known) {
    const path = placeOfPart(checkout, part)
    // What all worktrees share goes with the last of them.
    if (isInside(path, state) || (isShared && part.isLocal)) left.add(path)
    else parts.set(path, [...(parts.get(path) ?? []), part])
  }
  const paths = [...new Set([...parts.keys(), ...manifest.paths()])].filter(
    (path) => !left.has(path),
  )
  const undoings = paths.flatMap((path) => {
    const found = undoingOf(path, parts.get(path) ?? [], manifest)
    return found ? [{ ...found, path, shown: shownPath(checkout, path) }] : []
  })
  // A git hook is restored before the copy of it goes.
  return { checkout, state, manifest, undoings: undoings.toReversed() }
}

type Decided = Pick<Undoing, 'now' | 'after' | 'action' | 'why'>

function undoingOf(path: string, parts: InitPart[], manifest: Manifest): Decided | undefined {
  const now = lookAt(path)
  const noted = manifest.before(path)
  if (now.kind === 'missing' || (noted && isSame(now, noted.was))) return undefined
  if (noted?.isUntouched(now)) {
    const after = noted.was
    const action = after.kind === 'missing' ? 'delete' : 'restore'
    return { now, after, action, why: after.kind === 'missing' ? 'init made it' : 'as it was' }
  }
  const after = parts.reduceRight<FileState>((left, part) => part.take(left), now)
  if (!noted && manifest.exists && !isSame(after, now) && !parts.every(({ isLocal }) => isLocal)) {
    const why = 'was set up before init: undo again takes it out'
    return { now, after: now, action: 'leave', why }
  }
  if (isSame(after, now)) {
    const why = 'others have changed it, and nothing of ours is left in it'
    return noted ? { now, after, action: 'leave', why } : undefined
  }
  const isExact = noted !== undefined && isSame(after, noted.was)
  const why = isExact ? 'as it was' : noted ? 'changed since: only our part goes' : 'by its markers'
  return { now, after, action: after.kind === 'missing' ? 'delete' : 'take out', why }
}

/** Goes back. Killed anywhere, it can be done again: the manifest goes last. */
export function applyUndo({ checkout, state, manifest, undoings }: UndoPlan): { kept: boolean } {
  const pending = undoings.filter(({ now, after }) => !isSame(now, after))
  refuseReadOnly(pending.map(({ path }) => path))
  const scratch = existsSync(manifest.folder) ? manifest.folder : checkout.root
  pending.forEach(({ path, after }, i) => {
    putFile(path, after, scratch)
    step(`undo.written.${i}`)
  })
  for (const folder of manifest.folders()) if (folder !== state) removeEmpty(folder)
  if (!manifest.exists) {
    for (const { path, after } of pending) {
      if (after.kind === 'missing') removeUpward(dirname(path), checkout)
    }
  }
  manifest.remove()
  return { kept: !removeState(state, manifest) }
}

/** What else is in there is the store: tasks, locks and events are not ours to throw away. */
function removeState(state: string, { folder }: Manifest): boolean {
  if (!existsSync(state)) return true
  const noted = existsSync(folder) ? readdirSync(folder) : []
  // Other worktrees have manifests here; what a killed process was writing is of no use.
  if (noted.some((name) => !name.startsWith('new-'))) return false
  rmSync(folder, { recursive: true, force: true })
  if (readdirSync(state).some((name) => name !== '.gitignore')) return false
  rmSync(join(state, '.gitignore'), { force: true })
  return removeEmpty(state)
}

function removeUpward(folder: string, { root }: InitCheckout): void {
  if (folder === root || !isInside(folder, root) || folder.includes('/.git/')) return
  if (removeEmpty(folder)) removeUpward(dirname(folder), { root } as InitCheckout)
}

function removeEmpty(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(systemCode(error) ?? '')) return false
    throw error
  }
}
