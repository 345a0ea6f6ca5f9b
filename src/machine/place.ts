import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { ELSEWHERE, fileSystemOf, statOf } from './file_system.ts'
import { homeFolder } from './login.ts'

export const STATE_NAME = '.leasehold'
export const CONFIG_FILE = 'config.json'
/** What a running server leaves in its state folder. */
export const SERVER = 'server.json'

/**
 * Where the state lives: `LEASEHOLD_DIR`, else the nearest `.leasehold/` upward from here (in a git
 * worktree the main checkout's, so that all worktrees share one store), else `~/.leasehold`.
 */
export function stateFolder(env: NodeJS.ProcessEnv, cwd: string): string {
  if (env['LEASEHOLD_DIR']) return resolve(cwd, env['LEASEHOLD_DIR'])
  return nearestState(cwd) ?? join(homeFolder(env), STATE_NAME)
}

/** The state folder of the checkout around `cwd`, or of one further up. */
export function nearestState(cwd: string): string | undefined {
  for (let here = resolve(cwd); ; here = dirname(here)) {
    const main = mainCheckout(here)
    const shared = main && join(main, STATE_NAME)
    if (shared && isFolder(shared)) return shared
    if (isFolder(join(here, STATE_NAME))) return join(here, STATE_NAME)
    if (dirname(here) === here) return undefined
  }
}

/** What this login keeps outside of every checkout: what a person approved, first of all. */
export function loginState(env: NodeJS.ProcessEnv): string {
  return join(env['XDG_STATE_HOME'] || join(homeFolder(env), '.local', 'state'), 'leasehold')
}

/** In a linked worktree `.git` is a file that names a folder inside the main checkout's `.git`. */
export function mainCheckout(folder: string): string | undefined {
  const file = join(folder, '.git')
  if (!existsSync(file) || isFolder(file)) return undefined
  const gitdir = /^gitdir: (.+)$/m.exec(readFileSync(file, 'utf8'))?.[1]
  const inside = gitdir && /^(.*)\/\.git\/worktrees\/[^/]+\/?$/.exec(resolve(folder, gitdir))
  return inside ? inside[1] : undefined
}

function isFolder(path: string): boolean {
  return statOf(path)?.isDirectory() ?? false
}

/** Where `config.json`, whose state folder lies in `base`, keeps a project. */
export const projectFolder = (base: string, path: string, home: () => string) =>
  resolve(base, path.replace(/^~(?=\/|$)/, home))

/** Refuses a folder that is not safe to keep state in. A folder that does not exist yet is fine. */
export function refuseUnsafeFolder(folder: string): void {
  const { name, refused } = fileSystemOf(folder)
  if (refused) {
    throw new Refusal('invalid', `${folder} is on a network file system (${name})`, {
      next: ELSEWHERE,
      details: { folder, network: name },
    })
  }
  const uid = process.getuid?.()
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (stat && !stat.isDirectory()) {
    throw new Refusal('invalid', `${folder} is not a folder`, {
      next: 'Move that file away, or point LEASEHOLD_DIR elsewhere.',
    })
  }
  if (stat && uid !== undefined && stat.uid !== uid) {
    throw new Refusal('forbidden', `${folder} belongs to another login (uid ${stat.uid})`, {
      next: 'Use a state folder of your own: set LEASEHOLD_DIR.',
      details: { folder, uid: stat.uid },
    })
  }
}
