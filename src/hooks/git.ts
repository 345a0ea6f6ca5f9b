import { word } from '../core/quote.ts'
import { admits, leaseUnder } from '../core/caller.ts'
import { checkoutAt } from '../machine/checkout.ts'
import { loginName } from '../machine/login.ts'
import { host } from '../machine/process.ts'
import { familyHere, namedAgent, sessionOf } from '../machine/family.ts'
import { letPast } from './bypass.ts'
import { isState } from './kept.ts'
import { type Conflict, conflictsIn, type HookContext, NAMES_MAX } from './context.ts'
import { noticed } from './net.ts'
import { keptPaths, stagedPaths, unpushedPaths } from './git_facts.ts'
import { type Answer, plainName, SILENT, type Verdict } from './protocol.ts'
import { conflictText } from './wording.ts'

const EVENTS: Record<string, string> = { precommit: 'commit', prepush: 'push' }

/** The verb that git is about to do; undefined when the hook is none of ours. */
export const gitVerb = (event: string) => EVENTS[plainName(event)]

/** Who runs git: as a hook, the environment or a person said; the agent above us, or the login. */
export function gitAgent(folder: string, env: NodeJS.ProcessEnv) {
  const session = sessionOf(familyHere(folder, env))
  const named = namedAgent(env['LEASEHOLD_AGENT'] || undefined, session)
  // What an agent runs is its own, whatever it says for that one command.
  const agent = session && !admits(session.agent, named ?? '') ? session.agent : named
  return { agent: agent ?? `cli:${loginName()}@${host}`, process: session?.process ?? undefined }
}

/** `pre-commit` and `pre-push`: what goes into history must not be another agent's. */
export async function guardHistory(
  context: HookContext,
  verb: string,
  input: string,
): Promise<Verdict> {
  const { cwd } = context.around
  const names = verb === 'commit' ? stagedPaths(cwd) : pushedPaths(cwd, input)
  const isAsked = verb === 'commit' && names.some(isState)
  const state = isAsked ? keptPaths(cwd).filter(isState) : []
  const stale = await staleFence(context)
  const found = await conflictsIn(context, checkoutAt(cwd, context.around), names)
  const conflicts = found.filter(({ holder }) => !isRelated(holder, context.caller.agent))
  const text = [
    state.length > 0 ? stateText(state[0]!) : undefined,
    stale,
    conflicts.length > 0 ? refusalText(verb, conflicts) : undefined,
  ]
  const denial = text.filter(Boolean).join('\n')
  const strange = await noticed(context).catch(() => [])
  const said = [
    ...(names.length > NAMES_MAX ? [`Leasehold looked at the first ${NAMES_MAX} paths only`] : []),
    ...strange.map((each) => `Leasehold: ${each}`),
  ]
  const notice = said.length > 0 ? said.join('\n') : undefined
  if (denial === '') return notice === undefined ? {} : { notice }
  const full = [denial, notice].filter(Boolean).join('\n')
  if (context.settings.mode === 'warn' && state.length === 0) return { notice: full }
  return letPast(context, full, [...state, ...conflicts.map(({ path }) => path)])
}

/** A state folder is not shared: to unpack one would be to run the programs that it names. */
const stateText = (path: string) =>
  `Leasehold: this commit contains ${word(path)}, which is in a state folder\n` +
  '  next: Take it out (git rm -r --cached .leasehold) and commit the rest; .gitignore names it.'

/** git does not say which subagent it works for: what one has, all of its family may commit. */
function isRelated(holder: string, agent: string): boolean {
  return holder.split('/')[0] === agent.split('/')[0]
}

function refusalText(verb: string, conflicts: Conflict[]): string {
  const what = verb === 'commit' ? 'this commit contains' : 'this push contains changes to'
  const next =
    verb === 'commit'
      ? 'Unstage them (git restore --staged FILE…) and commit the rest, or wait till they are free.'
      : 'Wait until they are free, or agree with the holder.'
  return `${conflictText(what, conflicts)}\n  next: ${next} ${BYPASS}`
}

const BYPASS = 'A person who knows better: LEASEHOLD_BYPASS="why" git …, which is put on record.'

/** `<local ref> <local commit> <remote ref> <remote commit>`, one line for each ref. */
function pushedPaths(cwd: string, input: string): string[] {
  const found = new Set<string>()
  for (const line of input.split('\n')) {
    const [, local = '', , remote = ''] = line.split(' ')
    // A ref that is deleted has no commit.
    if (!/^[\da-f]{40,64}$/.test(local) || /^0+$/.test(local)) continue
    const seen = /^0+$/.test(remote) ? undefined : remote
    for (const path of unpushedPaths(cwd, local, seen)) found.add(path)
  }
  return [...found]
}

/** A command under a lease (`LEASEHOLD_TASK`, `LEASEHOLD_LOCK`) must still have the lease. */
async function staleFence({ env, asking, caller }: HookContext): Promise<string | undefined> {
  const task = env['LEASEHOLD_TASK']
  const lock = env['LEASEHOLD_LOCK'] ?? (task && `task:${task}`)
  const under = leaseUnder({ ...env, LEASEHOLD_LOCK: lock })
  if (!under) return undefined
  const status = await asking.ask('lock.status', { name: under.lock }, caller)
  if (status.is_locked && status.fence === under.fence) return undefined
  const now = status.is_locked
    ? `${word(status.lock_holder ?? '')} holds it now`
    : 'nobody holds it now'
  return (
    `Leasehold: your lease on ${word(under.lock)} (fence ${under.fence}) is over: ${now}\n` +
    `  next: Keep your work aside (git stash, or a branch of your own), and claim it again.`
  )
}

export function answerGit({ deny, notice }: Verdict): Answer {
  if (deny !== undefined) return { ...SILENT, err: `${deny}\n`, code: 1 }
  return notice === undefined ? SILENT : { ...SILENT, err: `${notice}\n` }
}
