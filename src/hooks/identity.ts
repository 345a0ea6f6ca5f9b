import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Caller, leaseUnder } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import { type Ancestor, ancestors } from '../machine/process.ts'
import { KINDS } from './protocol.ts'

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

const UUID = /^[\da-f]{8}-[\da-f]{4}-([\da-f])[\da-f]{3}-[\da-f]{4}-([\da-f]{12})$/i
const ID_MAX = 40

/** Short enough to read, long enough to be the only one. */
function shortId(id: string): string {
  const [, version, tail] = UUID.exec(id) ?? []
  // The first half of a version 7 is the time: two that start together begin alike.
  if (version === '7') return tail!.slice(-8).toLowerCase()
  if (version !== undefined) return id.slice(0, 8).toLowerCase()
  return id.replaceAll(/[^\w.-]/g, '-').slice(0, ID_MAX)
}

const OURS = new RegExp(`^(?:${KINDS.join('|')}):`)

/**
 * Who the agent is: `claude:1a2b3c4d`, and a subagent of it `claude:1a2b3c4d/AGENT`. An id that a
 * person or a runner gave (`LEASEHOLD_AGENT`) is kept. One that a hook gave to another agent is
 * that of the agent which started this one: so this one is nested under it.
 */
export function agentId(
  kind: string,
  session: string | undefined,
  subagent: string | undefined,
  env: NodeJS.ProcessEnv,
): string {
  const own = `${kind}:${shortId(session ?? 'unknown')}`
  const given = env['LEASEHOLD_AGENT']
  const isOther = given && OURS.test(given) && given !== own && !given.startsWith(`${own}/`)
  const base = isOther ? `${given}/${own.replace(':', '-')}` : given || own
  return subagent === undefined ? base : `${base}/${shortId(subagent)}`
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
