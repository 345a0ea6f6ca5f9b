import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Caller, leaseUnder } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import { type Ancestor, ancestors } from '../machine/process.ts'
import { namesKept } from '../machine/sessions.ts'

/** What may stand between an agent and its hook: a shell, or what starts programs for it. */
const WRAPPERS = new Set(
  `sh bash dash zsh fish ksh ash busybox env timeout nice ionice nohup setsid sudo doas stdbuf
  time xargs npx npm pnpm yarn bunx corepack`.split(/\s+/),
)
/** A process above one of these belongs to no agent. */
const ENDS = new Set(['systemd', 'init', 'tini', 'dumb-init', 'launchd', 'containerd-shim'])
/** Programs that run others' scripts: only their arguments tell which. */
const HOSTS = /^(?:node|bun|deno|MainThread)$/

/**
 * The agent's own process: the nearest ancestor that is not a shell or a wrapper. One that is gone
 * a moment later would take all reservations with it, so a script of a package manager is a wrapper
 * too. Undefined where it cannot be told: then only the TTL ends what the agent holds.
 */
export function agentProcess(): ProcessRef | undefined {
  for (const ancestor of ancestors()) {
    if (ENDS.has(ancestor.name)) return undefined
    if (!isWrapper(ancestor)) return ancestor.ref
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

/** Whether `process` runs inside another process that hooks know: another agent has started it. */
export function hasAgentAbove(folder: string, process: ProcessRef | undefined): boolean {
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
