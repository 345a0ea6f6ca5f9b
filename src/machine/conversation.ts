import { readFileSync } from 'node:fs'
import { KINDS } from '../agents/kinds.ts'
import { attempt } from '../core/attempt.ts'
import { planted } from '../core/planted.ts'
import type { ProcessRef } from '../core/rows.ts'
import { environmentOf } from './proc.ts'
import { ancestors } from './process.ts'

/**
 * A conversation as its client names it: in the input of hooks, in the environment of what it
 * starts, in `_meta` of an MCP call. Whichever of these asks, the same agent is meant.
 */
export interface Conversation {
  kind: string
  session: string | undefined
  /** Set where a subagent is meant. */
  subagent?: string | undefined
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

const nested = (base: string, { subagent }: Conversation) =>
  subagent === undefined ? base : `${base}/${shortId(subagent)}`

const ownId = ({ kind, session = 'unknown' }: Conversation) => `${kind}:${shortId(session)}`

/** `claude:1a2b3c4d` inside another agent is `OTHER/claude-1a2b3c4d`. */
const insideOf = (outer: string, own: string) => `${outer}/${own.replace(':', '-')}`

const OURS = new RegExp(`^(?:${KINDS.join('|')}):`)

type Env = Record<string, string | undefined>

/**
 * Who the agent is: `claude:1a2b3c4d`, and a subagent of it `claude:1a2b3c4d/AGENT`. An id that a
 * person gave (`LEASEHOLD_AGENT`) is kept, and so is that of a run for the conversation which the
 * run is. One that stands for another conversation is that of the agent which started this one: so
 * this one is nested under it.
 */
export function agentId(
  conversation: Conversation,
  env: Env,
  { isInner = false, carried = carriedIn(env) } = {},
): string {
  const own = ownId(conversation)
  const given = env['LEASEHOLD_AGENT'] || outerOf(conversation, carried)
  if (!given || given === own || given.startsWith(`${own}/`)) {
    return nested(given || own, conversation)
  }
  const isRun = given.endsWith(`:${env['LEASEHOLD_RUN']}`) && !isInner
  return nested(OURS.test(given) && !isRun ? insideOf(given, own) : given, conversation)
}

/** The conversation of another client, or of another Codex, that this one was started in. */
function outerOf({ kind, session }: Conversation, carried: Conversation[]): string | undefined {
  // Claude Code tells its hooks their own; Codex does not, so that what is there is another's.
  const outer = carried.find((each) => {
    return each.kind !== kind || (kind === 'codex' && each.session !== session)
  })
  return outer && nested(ownId(outer), outer)
}

/** The conversations that an environment names; of several, each but one is around another. */
function carriedIn(env: Env): Conversation[] {
  if (planted('R51')) return []
  const { CODEX_THREAD_ID: thread, CODEX_SESSION_ID: root = thread } = env
  const subagent = thread === root ? undefined : thread
  const claude = env['CLAUDE_CODE_SESSION_ID']
  return [
    ...(root ? [{ kind: 'codex', session: root, subagent }] : []),
    ...(claude ? [{ kind: 'claude', session: claude }] : []),
  ]
}

/** Whether an agent that hooks have noted is this conversation. */
export function isOf(agent: string, conversation: Conversation): boolean {
  const own = ownId(conversation)
  return agent === own || agent.endsWith(insideOf('', own))
}

/** The same conversation's subagent, if one is meant. */
export const subagentOf = nested

/**
 * What the environment names, as the client gave it to the first program between `process` (or the
 * top of what can be seen) and us: a command can set any variable for those that it starts, but not
 * for those that it was started by.
 */
export function carriedHere(env: Env, process: ProcessRef | null): Conversation[] {
  let found = carriedIn(env)
  for (const { ref } of ancestors()) {
    if (ref.pid === process?.pid) break
    const above = carriedIn(environmentOf(ref.pid) ?? {})
    if (above.length > 0) found = above
  }
  return found
}

/** The command lines of what stands between `process` and us. */
export function commandsBelow(process: ProcessRef): string[] {
  const found: string[] = []
  for (const { ref } of ancestors()) {
    if (ref.pid === process.pid) break
    found.push(attempt(() => readFileSync(`/proc/${ref.pid}/cmdline`, 'utf8'), ''))
  }
  return found
}
