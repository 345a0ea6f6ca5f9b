import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { Refusal } from '../../../core/refusal.ts'
import { homeFolder } from '../../../machine/login.ts'
import { mainCheckout } from '../../../machine/place.ts'
import { isOnPath } from './agents.ts'
import { isInside } from './files.ts'

/** Where we are: what is to be set up, and how its git hooks are run. */
export interface InitCheckout {
  /** The top of the checkout; without git, the folder we are in. */
  root: string
  isGit: boolean
  /** The checkout in which the state of all its worktrees is kept. */
  main: string
  hooks: HooksFolder | undefined
  /** The folders in which we may write. */
  bounds: string[]
  /** Leasehold comes with the repository's own packages. */
  isDependency: boolean
}

interface HooksFolder {
  folder: string
  kind: 'git' | 'husky' | 'shared'
  /** Why it is not ours to write to. */
  forbidden?: string
}

/** Refuses (`invalid`) a home folder and a repository without files. */
export function findCheckout(cwd: string, env: NodeJS.ProcessEnv): InitCheckout {
  const here = realpathSync(cwd)
  const top = git(here, ['rev-parse', '--show-toplevel'])
  const isGit = top !== undefined && top !== ''
  if (!isGit) refuseOddGit(here, env)
  const root = isGit ? realpathSync(top) : here
  refuseHome(root, env)
  const main = mainCheckout(root) ?? root
  const common = isGit ? realpathSync(resolve(root, gitFolder(root))) : undefined
  const isDependency = dependsOn(root, 'leasehold')
  return {
    root,
    isGit,
    main,
    hooks: common === undefined ? undefined : hooksOf(root, common),
    bounds: [root, main, ...(common === undefined ? [] : [common])],
    isDependency,
  }
}

/** No checkout, although git is at work here: better say so than set up the wrong folder. */
function refuseOddGit(here: string, env: NodeJS.ProcessEnv): void {
  if (git(here, ['rev-parse', '--git-dir']) !== undefined) {
    throw new Refusal('invalid', `${here} is inside a git folder, where there are no files`, {
      next: 'Go to a checkout of the repository, then: leasehold init',
    })
  }
  for (let folder = here; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) {
      if (!isOnPath('git', env)) throw noGit(folder)
      throw new Refusal('forbidden', `git does not take ${folder} for a checkout`, {
        next: 'See what it says: git status. Then try again.',
      })
    }
    if (folder === dirname(folder)) return
  }
}

function noGit(folder: string): Refusal {
  return new Refusal('not_found', `${folder} is a git checkout, and git is not on the PATH`, {
    next: 'Install git, or put it on the PATH; then try again.',
  })
}

/** There the settings of agents are those of all projects, and the state is everybody's default. */
function refuseHome(root: string, env: NodeJS.ProcessEnv): void {
  const home = homeFolder(env, '/')
  if (root !== dirname(root) && !(existsSync(home) && realpathSync(home) === root)) return
  throw new Refusal('invalid', `${root} is no project: what is written here is for all of them`, {
    next: 'Go to the folder of one project, then: leasehold init',
  })
}

const GIT_MS = 10_000

function git(cwd: string, args: string[]): string | undefined {
  try {
    const said = execFileSync('git', args, {
      cwd,
      encoding: 'utf8',
      timeout: GIT_MS,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return said.replace(/\n$/, '')
  } catch {
    return undefined
  }
}

/** All worktrees of a repository share this one. */
const gitFolder = (root: string) => git(root, ['rev-parse', '--git-common-dir']) ?? '.git'

function hooksOf(root: string, common: string): HooksFolder {
  const husky = join(root, '.husky')
  const said = git(root, ['config', '--type=path', 'core.hooksPath'])
  const named = said ? resolve(root, said) : join(common, 'hooks')
  const isHusky = existsSync(husky) && (isInside(named, husky) || dependsOn(root, 'husky'))
  if (isHusky) return { folder: husky, kind: 'husky' }
  const folder = existsSync(named) ? realpathSync(named) : named
  if (isInside(folder, common)) return { folder, kind: 'git' }
  if (isInside(folder, root)) return { folder, kind: 'shared' }
  const forbidden = `git looks for hooks in ${folder}, outside of this checkout`
  return { folder, kind: 'shared', forbidden }
}

function dependsOn(root: string, name: string): boolean {
  try {
    const text = readFileSync(join(root, 'package.json'), 'utf8')
    const found = JSON.parse(text) as Record<string, Record<string, unknown> | undefined>
    return ['dependencies', 'devDependencies', 'optionalDependencies'].some(
      (kind) => found[kind]?.[name] !== undefined,
    )
  } catch {
    return false
  }
}

/** A path as people of this checkout would write it. */
export function shownPath({ root }: InitCheckout, path: string): string {
  return relative(root, path) || '.'
}
