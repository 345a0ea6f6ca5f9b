import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { attempt } from '../core/attempt.ts'
import type { ProcessRef } from '../core/rows.ts'
import { realpathOf } from '../machine/checkout.ts'
import { homeFolder } from '../machine/login.ts'
import { loginState, nearestState } from '../machine/place.ts'
import { keepSession, namesKept } from '../machine/sessions.ts'
import { Asking } from './asking.ts'
import type { HookContext } from './context.ts'
import type { HookCall } from './protocol.ts'
import { type HookSettings, readSettings } from './settings.ts'
import { type Effects, noEffects } from './shell/effects.ts'
import { effectsOf } from './shell/script.ts'
import { expand, isFolder, nearestFolder, patchTargets } from './targets.ts'

/** One store that a call concerns, and what the call would do to the files that it guards. */
interface Scene extends Pick<HookContext, 'asking' | 'settings' | 'around'> {
  settings: HookSettings
  effects: Effects
}

/** All that a call would write, commit, push or throw away. */
function effectsOfCall({ command, cwd, files }: HookCall): Effects {
  const home = homeFolder(process.env, '/')
  const effects =
    command === undefined
      ? noEffects()
      : effectsOf(command, { cwd, home, isFolder, isThere: existsSync })
  for (const file of files.flatMap((each) => spellings(each, home))) {
    effects.writes.push({ path: resolve(cwd, file), kind: 'file' })
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
export function scenesOf(env: NodeJS.ProcessEnv, call: HookCall): Scene[] {
  const here = new Asking(env, call.cwd)
  const scenes = new Map([[realpathOf(here.folder), sceneAt(here, call.cwd, env)]])
  const sceneOf = (dir: string) => {
    const folder = isFixed(env) ? undefined : nearestState(dir)
    const key = realpathOf(folder ?? here.folder)
    const scene = scenes.get(key) ?? sceneAt(new Asking(env, dir), dir, env)
    scenes.set(key, scene)
    return scene.effects
  }
  const effects = effectsOfCall(call)
  for (const each of effects.writes) sceneOf(folderOf(each.path)).writes.push(each)
  for (const each of effects.touches) sceneOf(folderOf(each.path)).touches.push(each)
  for (const each of effects.commits) sceneOf(realpathOf(each.dir)).commits.push(each)
  for (const each of effects.pushes) sceneOf(realpathOf(each)).pushes.push(each)
  for (const each of effects.discards) sceneOf(realpathOf(each.dir)).discards.push(each)
  return [...scenes.values()].filter(({ asking }) => isInUse(asking, env))
}

/** Given by hand, or by a token: then there is one store for all files. */
const isFixed = (env: NodeJS.ProcessEnv) => Boolean(env['LEASEHOLD_DIR'] || env['LEASEHOLD_TOKEN'])

const folderOf = (path: string) => nearestFolder(dirname(realpathOf(path)))

function sceneAt(asking: Asking, cwd: string, env: NodeJS.ProcessEnv): Scene {
  const around = { cwd, folder: asking.folder, isShared: asking.isShared }
  return { asking, around, settings: readSettings(asking.folder, env), effects: noEffects() }
}

/** There is a state folder, or a server elsewhere that we were given a token for. */
export const isInUse = ({ folder }: Asking, env: NodeJS.ProcessEnv) =>
  existsSync(folder) || Boolean(env['LEASEHOLD_TOKEN'])

/**
 * Stores that edits of this agent led to before, other than those of `scenes`: what it holds there
 * is renewed and given back as at home. Remembered for as long as its process lives.
 */
export function scenesBefore(
  env: NodeJS.ProcessEnv,
  process: ProcessRef | undefined,
  scenes: readonly Scene[],
): Scene[] {
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
  scenes: readonly Scene[],
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
