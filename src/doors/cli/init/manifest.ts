import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { attempt } from '../../../core/attempt.ts'
import { Refusal } from '../../../core/refusal.ts'
import { sha256 } from '../../../machine/digest.ts'
import { type FileState, isSame, putFile } from './files.ts'
import type { PlannedChange } from './plan.ts'

type Kept =
  | { kind: 'missing' }
  | { kind: 'file'; base64: string; mode: number }
  | { kind: 'link'; target: string }

interface Entry {
  was: Kept
  /** Digest of what we made of it: as long as it is that, nobody else has changed it. */
  made: string
}

interface Kind {
  version: 1
  root: string
  /** Folders that were not there before, outer ones first. */
  folders: string[]
  files: Record<string, Entry>
}

/**
 * What stood in each file before us, byte for byte. It is on disk before the file is changed, so
 * that after a kill in between one can go on or go back. Kept with the state, one per worktree.
 */
export class Manifest {
  readonly folder: string
  private readonly path: string
  private kept: Kind
  readonly exists: boolean

  /** Refuses (`damaged`) a manifest that cannot be read: what to go back to is in there. */
  constructor(
    state: string,
    private readonly root: string,
    main: string,
  ) {
    this.folder = join(state, 'init')
    const name = root === main ? 'main' : `worktree-${sha256(root).slice(0, 12)}`
    this.path = join(this.folder, `${name}.json`)
    this.exists = existsSync(this.path)
    this.kept = this.exists ? this.read() : { version: 1, root, folders: [], files: {} }
  }

  private read(): Kind {
    try {
      const kept = JSON.parse(readFileSync(this.path, 'utf8')) as Kind
      if (kept.version === 1 && Array.isArray(kept.folders)) return kept
    } catch {
      // Said below, with the path.
    }
    throw new Refusal('damaged', `${this.path} cannot be read`, {
      next: 'Move it away: init --undo then goes by the markers in each file.',
      details: { path: this.path },
    })
  }

  /** Notes what is about to be changed, durably. */
  note({ path, before, after, part }: PlannedChange): void {
    const name = relative(this.root, path)
    const last = this.kept.files[name]
    const isAsNoted = last && (digestOf(before) === last.made || isSame(before, restored(last.was)))
    // Where others have been at work since, what they made of it is what to go back to.
    const was = isAsNoted ? last.was : keep(last ? part.take(before) : before)
    this.kept.files[name] = { was, made: digestOf(after) }
    this.write()
  }

  noteFolder(path: string): void {
    const name = relative(this.root, path)
    if (this.kept.folders.includes(name)) return
    this.kept.folders.push(name)
    this.write()
  }

  private write(): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    const bytes = Buffer.from(`${JSON.stringify(this.kept, null, 2)}\n`)
    putFile(this.path, { kind: 'file', bytes, mode: 0o600 }, this.folder)
  }

  /** What stood there before us; undefined if we did not write it. */
  before(path: string): { was: FileState; isUntouched(now: FileState): boolean } | undefined {
    const entry = this.kept.files[relative(this.root, path)]
    if (!entry) return undefined
    const isUntouched = (now: FileState) => digestOf(now) === entry.made
    return { was: restored(entry.was), isUntouched }
  }

  paths(): string[] {
    return Object.keys(this.kept.files).map((name) => resolve(this.root, name))
  }

  /** Inner ones first: the order in which they can be removed. */
  folders(): string[] {
    return this.kept.folders.map((name) => resolve(this.root, name)).toReversed()
  }

  /** Whether other worktrees of this repository are set up too: hooks of git are theirs as well. */
  hasOthers(): boolean {
    if (!existsSync(this.folder)) return false
    return readdirSync(this.folder).some((name) => {
      const path = join(this.folder, name)
      return name.endsWith('.json') && path !== this.path && existsSync(rootIn(path))
    })
  }

  remove(): void {
    rmSync(this.path, { force: true })
  }
}

const rootIn = (path: string) =>
  attempt(() => (JSON.parse(readFileSync(path, 'utf8')) as Kind).root, '')

function keep(state: FileState): Kept {
  if (state.kind !== 'file') return state
  return { kind: 'file', base64: state.bytes.toString('base64'), mode: state.mode }
}

function restored(kept: Kept): FileState {
  if (kept.kind !== 'file') return kept
  return { kind: 'file', bytes: Buffer.from(kept.base64, 'base64'), mode: kept.mode }
}

function digestOf(state: FileState): string {
  if (state.kind === 'link') return `link ${state.target}`
  return state.kind === 'file' ? `${state.mode} ${sha256(state.bytes)}` : state.kind
}
