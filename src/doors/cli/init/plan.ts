import { accessSync, constants, existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AGENTS } from '../../../agents/all.ts'
import type { AgentKind } from '../../../agents/kinds.ts'
import { Refusal } from '../../../core/refusal.ts'
import { refuseUnsafeFolder, stateFolder } from '../../../machine/place.ts'
import { refuseTracked } from '../../../machine/privacy.ts'
import { agentsSetUp, findAgents, findUnguarded, isOnPath } from './agents.ts'
import { type InitCheckout, shownPath } from './checkout.ts'
import { type FileState, insidePath, isSame, lookAt } from './files.ts'
import type { InitPart } from './part.ts'
import { partsOf, stateOf } from './parts.ts'
import { agentsPluggedIn } from './plugin.ts'

type Action = 'create' | 'merge' | 'chain' | 'replace' | 'keep'

/** One file: what it is and what it is to be. */
export interface PlannedChange {
  part: InitPart
  /** Where the file really is: links inside the checkout are followed. */
  path: string
  shown: string
  before: FileState
  after: FileState
  action: Action
}

export interface Plan {
  checkout: InitCheckout
  state: string
  agents: AgentKind[]
  changes: PlannedChange[]
  /** What a person should know before agreeing. */
  notes: string[]
}

/** Looks at everything and writes nothing. Refuses whatever would stop the writing halfway. */
export function planInit(
  checkout: InitCheckout,
  said: AgentKind[] | undefined,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Plan {
  const { agents, notes } = chooseAgents(checkout, said, env)
  const state = stateOf(checkout)
  // Where another store is named, only the manifest is kept here.
  if (!env['LEASEHOLD_DIR'] && !env['LEASEHOLD_STORE']) refuseUnsafeFolder(state)
  if (existsSync(state)) refuseTracked(state)
  const known = agentsSetUp(checkout.root)
  const plugged = new Set(agentsPluggedIn(checkout.root, env))
  for (const agent of known) plugged.delete(agent)
  for (const agent of agents.filter((each) => plugged.has(each))) {
    notes.push(`${AGENTS[agent].name} has Leasehold as a plugin: its hooks are not written again.`)
  }
  const unseen = agents.filter((agent) => !AGENTS[agent].isSeen).map((agent) => AGENTS[agent].name)
  if (unseen.length > 0) {
    notes.push(
      `By documentation only: ${unseen.join(', ')}. Nobody has tried these hooks with the real ` +
        'program: see once that an edit is refused.',
    )
  }
  const written = agents.filter((agent) => !plugged.has(agent))
  const changes = changesFor(checkout, partsOf(checkout, written))
  return { checkout, state, agents, changes, notes: [...notes, ...notesOn(checkout, env, cwd)] }
}

/** Those that were asked for or are set up already; else those that are found here. */
function chooseAgents(
  { root }: InitCheckout,
  said: AgentKind[] | undefined,
  env: NodeJS.ProcessEnv,
): { agents: AgentKind[]; notes: string[] } {
  const known = agentsSetUp(root)
  if (said) return { agents: [...new Set([...known, ...said])], notes: [] }
  const found = findAgents(root, env)
  if (known.length > 0) {
    const others = found.filter(({ agent }) => !known.includes(agent))
    const notes = others.map(({ agent, by }) => {
      return `${AGENTS[agent].name} was found (${by}) and is not set up: init --client ${agent}`
    })
    return { agents: known, notes }
  }
  if (found.length === 0) {
    const note =
      'No agent was found here, so this is for Claude Code. Others: --client codex,cursor'
    return { agents: ['claude'], notes: [note] }
  }
  const notes = found.map(({ agent, by }) => `${AGENTS[agent].name} was found (${by}).`)
  return { agents: found.map(({ agent }) => agent), notes }
}

function notesOn(checkout: InitCheckout, env: NodeJS.ProcessEnv, cwd: string): string[] {
  const { root, main, isGit, hooks, isDependency } = checkout
  const notes: string[] = []
  if (!isGit) notes.push(`${root} is no git checkout: no git hooks, no .gitignore.`)
  else if (lookedFrom(cwd) !== root) notes.push(`The checkout begins at ${root}: set up there.`)
  if (main !== root) notes.push(`This is a worktree: its state is shared, in ${stateOf(checkout)}.`)
  if (hooks?.forbidden !== undefined) {
    notes.push(`${hooks.forbidden}: git hooks are yours to add (docs/init.md).`)
  }
  if (!isDependency && !isOnPath('leasehold', env)) {
    notes.push(
      'leasehold is not on the PATH: hooks pass and tools are missing until it is. From its own ' +
        'folder: npm install -g .',
    )
  }
  const unguarded = findUnguarded(root, env)
  if (unguarded.length > 0) {
    notes.push(
      `Not guarded: ${unguarded.join(', ')}. Its edits ask nobody, and reserve nothing: only git ` +
        'hooks see what it commits.',
    )
  }
  const used = stateFolder(env, cwd)
  if (env['LEASEHOLD_DIR']) {
    notes.push(`LEASEHOLD_DIR is set: commands of this shell use ${used} instead.`)
  } else if (!existsSync(stateOf(checkout)) && existsSync(used)) {
    notes.push(`Until now ${used} was used here: tasks and locks in it stay there.`)
  }
  return notes
}

const lookedFrom = (cwd: string) => insidePath(cwd, ['/'])

function changesFor(checkout: InitCheckout, parts: InitPart[]): PlannedChange[] {
  const changes: PlannedChange[] = []
  for (const part of parts) {
    const path = placeOfPart(checkout, part)
    // Two names of one file, e.g. CLAUDE.md as a link to AGENTS.md: the second adds to the first.
    const earlier = changes.find((each) => each.path === path)
    const before = earlier ? earlier.after : lookAt(path)
    const after = part.put(before)
    const shown = shownPath(checkout, part.path)
    const action = isSame(before, after) ? 'keep' : actionFor(part, before)
    if (earlier) Object.assign(earlier, { after, part: both(earlier.part, part) })
    else changes.push({ part, path, shown, before, after, action })
  }
  return changes
}

function both(first: InitPart, second: InitPart): InitPart {
  return {
    ...first,
    put: (before) => second.put(first.put(before)),
    take: (now) => first.take(second.take(now)),
  }
}

export function placeOfPart({ bounds }: InitCheckout, { path, isLinkKept }: InitPart): string {
  if (!isLinkKept) return insidePath(path, bounds)
  return join(insidePath(dirname(path), bounds), basename(path))
}

function actionFor({ isLinkKept, path }: InitPart, before: FileState): Action {
  if (before.kind === 'missing') return 'create'
  if (isLinkKept) return 'chain'
  return basename(path) === 'SKILL.md' ? 'replace' : 'merge'
}

export const pendingIn = (changes: PlannedChange[]) =>
  changes.filter(({ before, after }) => !isSame(before, after))

/** Refuses (`unavailable`) folders that cannot be written, before anything has been. */
export function refuseReadOnly(paths: string[]): void {
  for (const path of paths) {
    let folder = dirname(path)
    while (!existsSync(folder)) folder = dirname(folder)
    try {
      accessSync(folder, constants.W_OK | constants.X_OK)
    } catch {
      throw new Refusal(
        'unavailable',
        `${folder} cannot be written: ${basename(path)} has no place`,
        {
          next: 'Make it writable for this login, then try again. Nothing was written.',
          details: { folder },
        },
      )
    }
  }
}
