import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import pc from 'picocolors'
import { AGENTS } from '../../../agents/all.ts'
import { type AgentKind, KINDS } from '../../../agents/kinds.ts'
import { Refusal } from '../../../core/refusal.ts'
import { type CodexTrust, codexTrust, TRUST_NEXT, UNTRUSTED } from '../../../machine/codex_trust.ts'
import { forgetSetUp, noteSetUp } from '../../../machine/set_up.ts'
import { print } from '../show/show.ts'
import { table } from '../show/table.ts'
import { agentsNamed, onceFor } from './agents.ts'
import { applyPlan } from './apply.ts'
import { findCheckout } from './checkout.ts'
import { GIT_HOOKS } from './git_hooks.ts'
import { type PlannedChange, pendingIn, type Plan, planInit } from './plan.ts'
import { applyUndo, planUndo, type UndoPlan } from './undo.ts'
import { io } from '../../io.ts'

export { isOnPath, onceFor } from './agents.ts'

export interface InitOptions {
  yes?: boolean
  undo?: boolean
  check?: boolean
  dryRun?: boolean
  json?: boolean
  /** The agents to set up, with commas between them. */
  client?: string | undefined
}

interface InstalledHooks {
  name: string
  /** Undefined for those of git. */
  agent: AgentKind | undefined
  /** The top of the checkout. */
  root: string
  /** Folders that its lines add to the PATH. */
  bin: string[]
}

/** The hooks in the checkout around `cwd` that call leasehold: agents' and git's. */
export function hooksIn(cwd: string, env: NodeJS.ProcessEnv): InstalledHooks[] {
  const { root, hooks } = findCheckout(cwd, env)
  const files = KINDS.map((agent) => {
    const found = AGENTS[agent]
    return { agent, name: found.name, path: found.setUp.settings.path }
  })
  const ofGit = (hooks ? GIT_HOOKS : []).map((name) => {
    return { agent: undefined, name, path: join(hooks!.folder, name) }
  })
  return [...files, ...ofGit].flatMap(({ agent, name, path }) => {
    const file = resolve(root, path)
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    if (!text.includes('leasehold hook ')) return []
    const added = [...text.matchAll(/PATH=\\?"\$PATH:([^"\\]+)/g)].map(([, each]) => each!)
    const full = added.map((each) =>
      resolve(root, each.replace(/^\$\{CLAUDE_PROJECT_DIR:-\.\}/, '.')),
    )
    return [{ name, agent, root, bin: [...new Set(full)] }]
  })
}

/** Sets a repository up for its agents, or takes that back. Says what it does before it does it. */
export async function init(options: InitOptions): Promise<void> {
  const { env } = io()
  if (options.undo && options.check) {
    throw new Refusal('invalid', '--undo and --check do not go together', {
      next: 'leasehold init --check looks, leasehold init --undo takes back.',
    })
  }
  const cwd = io().cwd()
  const checkout = findCheckout(cwd, env)
  if (options.undo) {
    await undo(planUndo(checkout), options)
    return
  }
  const said = options.client === undefined ? undefined : agentsNamed(options.client)
  const plan = planInit(checkout, said, env, cwd)
  if (options.check) await check(plan, options)
  else await setUp(plan, options)
}

const shown = ({ checkout, agents, changes, notes }: Plan) => ({
  root: checkout.root,
  agents,
  changes: changes.map(({ shown: path, action, part }) => ({ path, action, why: part.why })),
  notes,
})

/** Only Codex itself can tell, and only when what it is to trust has been written. */
const trustOf = ({ agents, checkout }: Plan): Promise<CodexTrust> =>
  agents.includes('codex') ? codexTrust(checkout.root, io().env) : Promise.resolve('unknown')

/** In CI only what is committed counts: git hooks, the state and trust are each checkout's own. */
async function check(plan: Plan, { json }: InitOptions): Promise<void> {
  const isOwn = !io().env['CI']
  const wrong = pendingIn(plan.changes).filter(({ part }) => isOwn || !part.isLocal)
  if (wrong.length > 0) {
    const paths = wrong.map(({ shown: path, action }) => `${path} (${action})`)
    throw new Refusal('conflict', `Not as leasehold init would leave it: ${paths.join(', ')}`, {
      next: 'Run leasehold init, and commit what it writes.',
      details: shown({ ...plan, changes: wrong }),
    })
  }
  if (isOwn && (await trustOf(plan)) === 'untrusted') {
    throw new Refusal('conflict', UNTRUSTED, { next: TRUST_NEXT, details: shown(plan) })
  }
  const names = plan.agents.map((agent) => AGENTS[agent].name).join(', ')
  if (json) print(JSON.stringify({ ok: true, ...shown(plan) }))
  else
    print(
      [
        `${pc.green('set up')} for ${names}: ${plan.changes.length} files are as they should be`,
        ...onceFor(plan.agents),
      ].join('\n'),
    )
}

async function setUp(plan: Plan, options: InitOptions): Promise<void> {
  const pending = pendingIn(plan.changes)
  if (!options.json) print(planText(plan, pending))
  const written = !options.dryRun && pending.length > 0
  if (written) {
    if (!(await isAgreed(options, `Write these ${pending.length} files?`))) return
    applyPlan(plan)
  }
  if (!options.dryRun && existsSync(plan.state)) noteSetUp(io().env, plan.state)
  const codex_hooks = options.dryRun ? 'unknown' : await trustOf(plan)
  if (options.json) print(JSON.stringify({ written, codex_hooks, ...shown(plan) }))
  else if (written) print(doneText(plan, pending))
  if (options.json || options.dryRun || codex_hooks === 'trusted') return
  const said =
    codex_hooks === 'untrusted' ? UNTRUSTED : 'Codex runs hooks only once they are trusted'
  if (plan.agents.includes('codex')) print(`${pc.yellow(said)}. ${TRUST_NEXT}`)
}

function planText({ checkout, agents, changes, notes }: Plan, pending: PlannedChange[]): string {
  const names = agents.map((agent) => AGENTS[agent].name).join(', ')
  const head = `${pc.bold('leasehold init')} in ${checkout.root}, for ${names}`
  const said = notes.map((note) => `${pc.yellow('note')}  ${note}`)
  if (pending.length === 0) {
    const all = `${pc.green('Already set up')}: all ${changes.length} files are as they should be.`
    return [head, ...said, all].join('\n')
  }
  const rows = pending.map(({ shown: path, action, part }) => [path, action, part.why])
  const kept = changes.length - pending.length
  const rest = kept > 0 ? [pc.dim(`${kept} other files are as they should be already.`)] : []
  return [head, ...said, '', table(['FILE', 'WHAT', 'WHY'], rows), ...rest, ''].join('\n')
}

function doneText({ checkout, changes, agents }: Plan, pending: PlannedChange[]): string {
  const isCommitted = checkout.isGit && changes.some(({ part }) => !part.isLocal)
  const steps = [
    ...(isCommitted ? ['Commit these files, so that every clone of the repository has them.'] : []),
    'Start your agents anew: they read their settings when they start.',
    ...onceFor(agents),
    'Give them something to do: leasehold task add "Fix the login test"',
    'See who does what: leasehold task list, leasehold agent list, leasehold reserve list',
    'Take all of this back: leasehold init --undo',
  ]
  const done = `${pc.green('Done')}: ${pending.length} files written. Next:`
  return [done, ...steps.map((each) => `  ${pc.dim('·')} ${each}`)].join('\n')
}

async function undo(plan: UndoPlan, options: InitOptions): Promise<void> {
  const { undoings, checkout } = plan
  const changes = undoings.map(({ shown: path, action, why }) => ({ path, action, why }))
  const rows = changes.map(({ path, action, why }) => [path, action, why])
  if (!options.json) {
    print(`${pc.bold('leasehold init --undo')} in ${checkout.root}`)
    const none = pc.dim('Nothing of leasehold init is here.')
    print(rows.length > 0 ? table(['FILE', 'WHAT', 'WHY'], rows) : none)
  }
  if (options.dryRun) {
    if (options.json) print(JSON.stringify({ undone: false, root: checkout.root, changes }))
    return
  }
  const count = changes.filter(({ action }) => action !== 'leave').length
  if (count > 0 && !(await isAgreed(options, `Undo these ${count} files?`))) return
  const { kept } = applyUndo(plan)
  if (!plan.manifest.hasOthers()) forgetSetUp(io().env, plan.state)
  const left = kept ? plan.state : null
  if (options.json) {
    print(JSON.stringify({ undone: true, root: checkout.root, changes, state_kept: left }))
    return
  }
  if (count > 0) print(pc.green('Undone.'))
  if (left !== null) print(`${left} stays: the store is in it. Without it: rm -r ${left}`)
}

/** Asks once, on a terminal. Elsewhere nobody can agree, so it takes --yes. */
async function isAgreed({ yes, json }: InitOptions, question: string): Promise<boolean> {
  if (yes) return true
  if (json || !io().stdin.isTTY || !io().stdout.isTTY) {
    throw new Refusal('invalid', 'Nothing was written: there is no terminal to ask on', {
      next: 'Say --yes to agree, or --dry-run to see what would be done.',
    })
  }
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: question })
  if (!isCancel(answer) && answer) return true
  print('Nothing was written.')
  return false
}
