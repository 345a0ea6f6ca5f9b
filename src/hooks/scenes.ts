import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { attempt } from '../core/attempt.ts'
import type { ProcessRef } from '../core/rows.ts'
import { isInside, realpathOf } from '../machine/checkout.ts'
import { homeFolder } from '../machine/login.ts'
import { loginState, nearestState } from '../machine/place.ts'
import { forgetSetUp, noteSetUp, setUpAbove, standingOf } from '../machine/set_up.ts'
import { keepSession, namesKept } from '../machine/sessions.ts'
import { Asking } from './asking.ts'
import type { HookContext } from './context.ts'
import type { HookCall } from './protocol.ts'
import { type HookSettings, readSettings } from './settings.ts'
import { type Effects, noEffects } from './shell/effects.ts'
import { expand, isFolder, nearestFolder, patchTargets } from './targets.ts'

/** One store that a call concerns, and what the call would do to the files that it guards. */
export interface StoreScene extends Pick<HookContext, 'asking' | 'settings' | 'around'> {
  settings: HookSettings
  effects: Effects
  /** Why there is no store that could be asked, although there was one. */
  lost?: string | undefined
}

/** Where something happens, and what. */
type Acting = Pick<HookCall, 'cwd' | 'files' | 'named' | 'command'>

/** All that a call would write, commit, push or throw away. */
async function effectsOfCall({ command, cwd, files, named = [] }: Acting): Promise<Effects> {
  const home = homeFolder(process.env, '/')
  let effects = noEffects()
  if (command !== undefined) {
    // The grammar of a shell is half of a hook, and most calls have no command.
    const { effectsOf } = await import('./shell/script.ts')
    effects = effectsOf(command, { cwd, home, isFolder, isThere: existsSync })
  }
  for (const file of files.flatMap((each) => spellings(each, home))) {
    const path = resolve(cwd, file)
    // A folder that the agent does not stand in counts with all that is in it.
    const isTree = isFolder(path) && !isInside(path, cwd)
    effects.writes.push({ path, kind: isTree ? 'tree' : 'file', removes: isTree })
  }
  for (const path of named.map((each) => resolve(cwd, each))) {
    if (existsSync(path) && !isFolder(path)) effects.writes.push({ path, kind: 'file' })
  }
  for (const patch of effects.patches) effects.writes.push(...patchTargets(patch))
  return { ...effects, writes: effects.writes.flatMap(expand) }
}

/** As agents' tools may read a path: some take off blanks around it, and know the home folder. */
function spellings(file: string, home: string): string[] {
  const bare = file.trim()
  const isHome = bare === '~' || bare.startsWith('~/')
  return [...new Set([file, bare, ...(isHome ? [join(home, bare.slice(1))] : [])])]
}

/**
 * The stores that guard what a call does: that of the folder which the agent works in, and that of
 * every checkout which it reaches into from there. A store without a state folder guards nothing.
 */
export async function scenesOf(env: NodeJS.ProcessEnv, call: Acting): Promise<StoreScene[]> {
  const here = new Asking(env, call.cwd)
  const scenes = new Map([[realpathOf(here.folder), sceneAt(here, call.cwd, env)]])
  const known = new Map<string, Effects[]>()
  const scenesAt = (dir: string) => {
    const found = known.get(dir) ?? scenesFor(dir)
    known.set(dir, found)
    return found
  }
  const scenesFor = (dir: string) => {
    const nearest = isFixed(env) ? undefined : nearestState(dir)
    // Whatever somebody makes in between: the checkouts around it go on.
    const around = isFixed(env) ? [] : setUpAbove(env, dir)
    const folders = new Set([nearest ?? here.folder, ...around].map((each) => realpathOf(each)))
    return [...folders].map((folder) => {
      const scene = scenes.get(folder)
      if (scene) return scene.effects
      const isNearest = folder === realpathOf(nearest ?? here.folder)
      const asking = isNearest ? new Asking(env, dir) : new Asking(env, dir, folder)
      scenes.set(folder, sceneAt(asking, isNearest ? dir : dirname(folder), env))
      return scenes.get(folder)!.effects
    })
  }
  const effects = await effectsOfCall(call)
  const put = (dir: string, add: (to: Effects) => void) => scenesAt(dir).forEach(add)
  put(call.cwd, () => undefined)
  for (const each of effects.writes) put(folderOf(each.path), (to) => to.writes.push(each))
  for (const each of effects.touches) put(folderOf(each.path), (to) => to.touches.push(each))
  for (const each of effects.commits) put(realpathOf(each.dir), (to) => to.commits.push(each))
  for (const each of effects.pushes) put(realpathOf(each), (to) => to.pushes.push(each))
  for (const each of effects.discards) put(realpathOf(each.dir), (to) => to.discards.push(each))
  return [...scenes.values()].filter((scene) => scene.lost ?? isInUse(scene.asking, env))
}

/** Given by hand, or by a token: then there is one store for all files. */
const isFixed = (env: NodeJS.ProcessEnv) => Boolean(env['LEASEHOLD_DIR'] || env['LEASEHOLD_TOKEN'])

const folderOf = (path: string) => nearestFolder(dirname(realpathOf(path)))

function sceneAt(asking: Asking, cwd: string, env: NodeJS.ProcessEnv): StoreScene {
  const around = { cwd, folder: asking.folder, isShared: asking.isShared }
  const { settings, lost } = settingsAt(asking, env)
  return { asking, around, settings, lost, effects: noEffects() }
}

/** How hooks behave here, and why nobody can be asked, where that is known beforehand. */
function settingsAt(
  { folder }: Asking,
  env: NodeJS.ProcessEnv,
): { settings: HookSettings; lost: string | undefined } {
  const standing = standingOf(env, folder)
  const settings = readSettings(folder, env, standing)
  // With a token of a server elsewhere there may be no folder, and there need not be one.
  if (standing.lost !== undefined && !env['LEASEHOLD_TOKEN']) {
    // One that was only opened here is told about once, one that was set up until it is mended.
    if (!standing.isSetUp) forgetSetUp(env, folder)
    return { settings, lost: standing.lost }
  }
  if (settings.mode === 'off') forgetSetUp(env, folder)
  else if (existsSync(folder)) noteSetUp(env, folder, settings.unreachable)
  return { settings, lost: undefined }
}

/** There is a state folder, or a server elsewhere that we were given a token for. */
const isInUse = ({ folder }: Asking, env: NodeJS.ProcessEnv) =>
  existsSync(folder) || Boolean(env['LEASEHOLD_TOKEN'])

/**
 * Stores that edits of this agent led to before, other than those of `scenes`: what it holds there
 * is renewed and given back as at home. Remembered for as long as its process lives.
 */
export function scenesBefore(
  env: NodeJS.ProcessEnv,
  process: ProcessRef | undefined,
  scenes: readonly StoreScene[],
): StoreScene[] {
  if (!process || isFixed(env)) return []
  const known = new Set(scenes.map(({ around }) => realpathOf(around.folder)))
  return notedOf(env, process)
    .filter((folder) => !known.has(folder) && existsSync(folder))
    .map((folder) => sceneAt(new Asking(env, dirname(folder)), dirname(folder), env))
}

const notedOf = (env: NodeJS.ProcessEnv, process: ProcessRef) =>
  attempt(() => namesKept(loginState(env), process), [])

/** Remembers the stores of `scenes` that are not found from the folder which the agent works in. */
export function rememberScenes(
  env: NodeJS.ProcessEnv,
  process: ProcessRef | undefined,
  cwd: string,
  scenes: readonly StoreScene[],
): void {
  const others = scenes.filter(({ around }) => around.cwd !== cwd)
  if (!process || isFixed(env) || others.length === 0) return
  try {
    const place = loginState(env)
    mkdirSync(place, { recursive: true, mode: 0o700 })
    for (const { around } of others) {
      keepSession(place, process, realpathOf(around.folder), 'among')
    }
  } catch {
    // A home that cannot be written: what the agent holds there ends with its process or its TTL.
  }
}
