import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { realpathOf } from './checkout.ts'
import { statOf } from './file_system.ts'
import { loginState, mainCheckout, STATE_NAME } from './place.ts'
import { writePrivate } from './private_file.ts'

/**
 * State folders that hooks guard for this login, noted outside of them: when one is gone, or is
 * another, there is somebody who can tell. Otherwise all agents would go on, and no word be said.
 */
interface Note {
  folder: string
  /** Device and inode, of it and of the folder around it: another of that name is another. */
  identity: string
  around: string
  /** Whether `leasehold init` set it up: then its hooks refuse what they cannot ask about. */
  isSetUp: boolean
  unreachable?: string | undefined
}

const FOLDER = 'checkouts'

const placeOf = (env: NodeJS.ProcessEnv) => join(loginState(env), FOLDER)
const NAME_MAX = 200

/** The end of the path, which tells most apart; a digest takes milliseconds to load. */
const nameOf = (folder: string) => `${encodeURIComponent(folder).slice(-NAME_MAX)}.json`

const identityOf = (folder: string): string => {
  const stat = statOf(folder)
  return stat?.isDirectory() ? `${stat.dev}:${stat.ino}` : ''
}

function noteOf(env: NodeJS.ProcessEnv, folder: string): Note | undefined {
  const real = realpathOf(folder)
  const path = join(placeOf(env), nameOf(real))
  if (!statOf(path)) return undefined
  const note = attempt(() => JSON.parse(readFileSync(path, 'utf8')) as Note, undefined)
  // A checkout that was taken away whole, and made anew, is one that nobody has set up yet.
  const isSame = note?.folder === real && note.around === identityOf(dirname(real))
  return isSame ? note : undefined
}

/** Whether `init` left what it needs to be undone. */
const hasManifest = (folder: string) => statOf(join(folder, 'init'))?.isDirectory() ?? false

/** How a state folder stands that hooks may have guarded before. */
export interface StateStanding {
  isSetUp: boolean
  /** What its configuration last said of that. */
  unreachable?: string | undefined
  /** What has become of it, where it is not what it was. */
  lost?: string
}

/** Looks at the folder, and at what was noted of it. */
export function standingOf(env: NodeJS.ProcessEnv, folder: string): StateStanding {
  const note = noteOf(env, folder)
  const isSetUp = hasManifest(folder) || (note?.isSetUp ?? false)
  const { unreachable } = note ?? {}
  const standing = { isSetUp, unreachable }
  if (!note) return standing
  const now = identityOf(folder)
  if (now === note.identity) return standing
  const lost = now === '' ? 'is gone' : 'is not the one that was there'
  return { ...standing, lost: `the state folder ${folder} ${lost}` }
}

/** Notes that hooks guard by this folder. A home that cannot be written has no notes. */
export function noteSetUp(env: NodeJS.ProcessEnv, folder: string, unreachable?: string): void {
  attempt(() => {
    const isSetUp = hasManifest(folder) || (noteOf(env, folder)?.isSetUp ?? false)
    const real = realpathOf(folder)
    const identity = identityOf(real)
    const around = identityOf(dirname(real))
    const note: Note = { folder: real, identity, around, isSetUp, unreachable }
    const text = `${JSON.stringify(note)}\n`
    const [place, name] = [placeOf(env), nameOf(real)]
    const isKnown = attempt(() => readFileSync(join(place, name), 'utf8'), '') === text
    if (isKnown || identity === '') return
    mkdirSync(place, { recursive: true, mode: 0o700 })
    writePrivate(place, name, text)
  }, undefined)
}

/** `init --undo`: nobody is guarded by it any more. */
export function forgetSetUp(env: NodeJS.ProcessEnv, folder: string): void {
  rmSync(join(placeOf(env), nameOf(realpathOf(folder))), { force: true })
}

/** State folders of the checkouts above `dir` that `init` set up, also those that are gone. */
export function setUpAbove(env: NodeJS.ProcessEnv, dir: string): string[] {
  const found: string[] = []
  for (let at = realpathOf(dir); ; at = dirname(at)) {
    // Worktrees share the state of their main checkout, wherever they stand.
    const folder = join(mainCheckout(at) ?? at, STATE_NAME)
    if (hasManifest(folder) || noteOf(env, folder)?.isSetUp) found.push(folder)
    if (dirname(at) === at) return found
  }
}
