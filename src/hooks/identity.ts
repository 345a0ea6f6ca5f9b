import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Caller, leaseUnder } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import { agentId, type Conversation, subagentOf } from '../machine/conversation.ts'
import { SYSTEM } from '../machine/detached.ts'
import { environmentOf } from '../machine/proc.ts'
import { type Ancestor, ancestors, parentOf, processFact } from '../machine/process.ts'
import { namesKept, sessionFiles } from '../machine/sessions.ts'

/** What may stand between an agent and its hook: a shell, or what starts programs for it. */
const WRAPPERS = new Set(
  `sh bash dash zsh fish ksh ash busybox env timeout nice ionice nohup setsid sudo doas stdbuf
  time xargs npx npm pnpm yarn bunx corepack`.split(/\s+/),
)
/** Programs that run others' scripts: only their arguments tell which. */
const HOSTS = /^(?:node|bun|deno|MainThread)$/

/**
 * The agent's own process: the nearest ancestor that is not a shell or a wrapper. One that is gone
 * a moment later would take all reservations with it, so a script of a package manager is a wrapper
 * too. Undefined where it cannot be told, and where a person typed this: then only the TTL ends
 * what the agent holds.
 */
export function agentProcess(): ProcessRef | undefined {
  for (const ancestor of ancestors()) {
    if (SYSTEM.has(ancestor.name)) return undefined
    if (!isWrapper(ancestor)) return ancestor.ref
    // What is above the shell of a terminal is the terminal, and no agent.
    if (ancestor.hasTerminal) return undefined
  }
  return undefined
}

function isWrapper({ name, ref }: Ancestor): boolean {
  if (WRAPPERS.has(name.split(' ')[0]!)) return true
  return HOSTS.test(name) && WRAPPERS.has(scriptOf(ref.pid))
}

/** `node /usr/bin/pnpm.cjs exec …` → `pnpm`. */
function scriptOf(pid: number): string {
  try {
    const [, script = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return basename(script).replace(/(?:-cli)?\.[cm]?js$/, '')
  } catch {
    return ''
  }
}

/** Who asks a hook, and how its client is. */
interface Asker extends Conversation {
  /** The agent's process. */
  own: ProcessRef | undefined
  /** Whether a process of this client has one conversation at a time. */
  isAlone: boolean
}

/**
 * Who asks. A conversation's name is what somebody wrote on our standard input: it counts for the
 * process that was first seen with it, for as long as that lives. Another that says it is called as
 * it was before. What was given by a person is what the agent was started with.
 */
export function askingAgent(folder: string, env: NodeJS.ProcessEnv, asker: Asker): string {
  const { own, isAlone, ...said } = asker
  // With a token, the server says which names it may use.
  const asked = env['LEASEHOLD_TOKEN'] || !own ? undefined : environmentOf(own.pid)
  const given = asked ?? env
  const isInner = given['LEASEHOLD_RUN'] !== undefined && hasAgentAbove(folder, own)
  const named = (session: string | undefined) =>
    agentId({ ...said, session, subagent: undefined }, given, { isInner })
  // Where a client names no conversation, its process stands for one.
  const process = own && `process-${own.pid}`
  let agent = named(said.session ?? process)
  if (isTaken(folder, agent, own, isAlone)) {
    const [before] = own ? namesKept(folder, own) : []
    agent = before ?? named(process)
  }
  return subagentOf(agent, said)
}

/** Whether another process that lives was seen with this name first. */
function isTaken(
  folder: string,
  agent: string,
  own: ProcessRef | undefined,
  isAlone: boolean,
): boolean {
  if (own && namesKept(folder, own).includes(agent)) return false
  return sessionFiles(folder).some(
    ({ file, ref }) =>
      file.agents.includes(agent) &&
      processFact(ref) === 'alive' &&
      !(own && isOneProgram(own, ref, isAlone)),
  )
}

/** An editor is several processes, which one has started. */
function isOneProgram(a: ProcessRef, b: ProcessRef, isAlone: boolean): boolean {
  const [above, other] = [parentOf(a.pid), parentOf(b.pid)]
  return above === b.pid || other === a.pid || (!isAlone && above !== undefined && above === other)
}

/** Whether `process` runs inside another process that hooks know: another agent has started it. */
function hasAgentAbove(folder: string, process: ProcessRef | undefined): boolean {
  let isAbove = false
  for (const { ref } of ancestors()) {
    if (isAbove && namesKept(folder, ref).length > 0) return true
    isAbove ||= ref.pid === process?.pid
  }
  return false
}

export function callerFor(
  agent: string,
  process: ProcessRef | undefined,
  env: NodeJS.ProcessEnv,
): Caller {
  return {
    agent,
    // A token stands for an agent of its own; under another name it would be refused.
    given: !env['LEASEHOLD_TOKEN'] || Boolean(env['LEASEHOLD_AGENT']),
    process: process ?? null,
    admin: false,
    under: leaseUnder(env),
  }
}
