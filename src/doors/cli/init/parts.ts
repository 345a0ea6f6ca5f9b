import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { AGENTS } from '../../../agents/all.ts'
import type { AgentKind } from '../../../agents/kinds.ts'
import { hookEvents } from './agents.ts'
import { HASHES, MARKDOWN } from './block.ts'
import type { InitCheckout } from './checkout.ts'
import { GIT_HOOKS, gitHookParts } from './git_hooks.ts'
import { hookPart } from './hook_settings.ts'
import { blockPart, type InitPart, wholePart } from './part.ts'
import { OPENCODE_PLUGIN } from './opencode.ts'
import { serverFor, serverPart } from './servers.ts'
import { RULES, SKILL } from './teaching.ts'

const STATE = '.leasehold'
const BIN = 'node_modules/.bin'

export const stateOf = ({ main }: InitCheckout) => join(main, STATE)

/** Everything that init writes for these agents, in the order in which it is written. */
export function partsOf(checkout: InitCheckout, agents: AgentKind[]): InitPart[] {
  const { isGit, hooks } = checkout
  return [
    ownIgnorePart(checkout),
    ...(isGit ? [ignorePart(checkout)] : []),
    rulesPart(checkout),
    ...agents.flatMap((agent) => agentParts(checkout, agent)),
    ...(hooks && hooks.forbidden === undefined ? gitParts(checkout, hooks) : []),
  ]
}

/** The state folder ignores itself, also where no .gitignore of ours was committed. */
function ownIgnorePart(checkout: InitCheckout): InitPart {
  const path = join(stateOf(checkout), '.gitignore')
  return { ...wholePart(path, 'the state of this checkout, for you alone', '*\n'), isLocal: true }
}

const IGNORED = /^\/?\.leasehold\/?\s*$/m

function ignorePart({ root }: InitCheckout): InitPart {
  const path = join(root, '.gitignore')
  return blockPart({
    path,
    why: 'the state is never committed',
    body: `${STATE}/`,
    marks: HASHES,
    isTheirs: (others) => IGNORED.test(others),
  })
}

function rulesPart({ root }: InitCheckout): InitPart {
  const path = join(root, 'AGENTS.md')
  return blockPart({
    path,
    why: 'the working rules, for every agent',
    body: RULES,
    marks: MARKDOWN,
  })
}

function agentParts(checkout: InitCheckout, agent: AgentKind): InitPart[] {
  const { root, isDependency } = checkout
  const { name, setUp } = AGENTS[agent]
  const { settings, servers, allow, reads, skill, project = '' } = setUp
  const server = serverFor(isDependency, setUp.tools)
  const serving = servers.map((each) => {
    const unasked = each.shape === 'toml' ? ', to be used unasked' : ''
    return serverPart(
      join(root, each.path),
      `Leasehold as tools for ${name}${unasked}`,
      server,
      each.shape,
    )
  })
  const path = join(root, settings.path)
  const more = allow ? ', and may use our tools unasked' : ''
  const why = `${name} asks before it edits${more}`
  const { shape } = settings
  const events = hookEvents(agent, isDependency ? `${project}${BIN}` : undefined)
  const own = { path, why, root: settings.root, events, ...(allow && { allow }) }
  const taught = 'the working rules in full, when they are needed'
  return [
    ...(reads === undefined ? [] : importParts(root, name, reads)),
    ...serving,
    shape === 'plugin' ? wholePart(path, why, OPENCODE_PLUGIN) : hookPart({ ...own, shape }),
    ...(skill === undefined ? [] : [wholePart(join(root, skill), taught, SKILL)]),
  ]
}

/** Some do not read AGENTS.md by themselves. One that is a link to the other needs nothing. */
function importParts(root: string, name: string, own: string): InitPart[] {
  const rules = join(root, 'AGENTS.md')
  const inner = join(root, '.claude', own)
  const outer = join(root, own)
  const path = existsSync(inner) && !existsSync(outer) ? inner : outer
  if (existsSync(path) && existsSync(rules) && realpathSync(path) === realpathSync(rules)) return []
  const line = path === inner ? '@../AGENTS.md' : '@AGENTS.md'
  return [
    blockPart({
      path,
      why: `${name} reads AGENTS.md through this import`,
      body: line,
      marks: MARKDOWN,
      isTheirs: (others) => others.split(/\r?\n/).some((each) => each.trim() === line),
    }),
  ]
}

function gitParts(
  { isDependency }: InitCheckout,
  { folder, kind }: { folder: string; kind: string },
) {
  const husky = kind === 'husky' ? ' (run by husky)' : ''
  return GIT_HOOKS.flatMap((hook) => {
    const verb = hook === 'pre-commit' ? 'commit' : 'push'
    const why = `no ${verb} over what others have reserved${husky}`
    const bin = isDependency ? BIN : undefined
    return gitHookParts(folder, hook, { bin, isLocal: kind === 'git', why })
  })
}
