import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentKind, FACTS, hookEvents } from './agents.ts'
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
/** Claude Code may be anywhere in the project when it calls a hook. */
const CLAUDE_BIN = `\${CLAUDE_PROJECT_DIR:-.}/${BIN}`

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
  const { name, settings, shape, servers, root: fields, allow } = FACTS[agent]
  const tools = `Leasehold as tools for ${name}${agent === 'codex' ? ', to be used unasked' : ''}`
  const server = serverFor(isDependency)
  const serving = servers.map((each) =>
    serverPart(join(root, each.path), tools, server, each.shape),
  )
  const path = join(root, settings)
  const more = allow ? ', and may use our tools unasked' : ''
  const why = `${name} asks before it edits${more}`
  if (shape === 'plugin') return [...serving, wholePart(path, why, OPENCODE_PLUGIN)]
  const bin = agent === 'claude' ? CLAUDE_BIN : BIN
  const events = hookEvents(agent, isDependency ? bin : undefined)
  const hooks = hookPart({ path, why, shape, root: fields, events, ...(allow && { allow }) })
  if (agent === 'gemini') return [...importParts(root, name, 'GEMINI.md'), ...serving, hooks]
  if (agent !== 'claude') return [...serving, hooks]
  const skill = join(root, '.claude/skills/leasehold/SKILL.md')
  return [
    ...importParts(root, name, 'CLAUDE.md'),
    ...serving,
    hooks,
    wholePart(skill, 'the working rules in full, when they are needed', SKILL),
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
