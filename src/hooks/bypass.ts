import { shortLine } from '../core/quote.ts'
import { newRequestId } from '../machine/digest.ts'
import { carries } from '../machine/proc.ts'
import { seat } from '../machine/process.ts'
import { familyHere } from '../machine/family.ts'
import type { HookContext } from './context.ts'
import type { Verdict } from './protocol.ts'

const REASON_MAX = 500
const REFUSAL_MAX = 2_000
const PATHS_MAX = 100

/** Why a person wants this let past, in the environment of the agent or of git. */
export const bypassReason = ({ LEASEHOLD_BYPASS: said }: NodeJS.ProcessEnv) =>
  said === undefined ? undefined : shortLine(said.trim(), REASON_MAX)

const NOBODY = { agents: [], process: null }
const LENIENT = ['LEASEHOLD_BYPASS', 'LEASEHOLD_HOOKS'] as const

/**
 * An agent can set any variable for the git that it runs. Only those let something past that its
 * own process was started with.
 */
export function saidByPerson(folder: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const set = LENIENT.filter((name) => env[name] !== undefined)
  const { agents, process } = set.length > 0 ? familyHere(folder, env) : NOBODY
  if (agents.length === 0) return env
  // Of an agent outside of a sandbox nobody inside can say what it was started with.
  const isSeen = process?.seat === seat
  const own = (name: string) => isSeen && carries(process.pid, name, env[name]!) === 'alive'
  const dropped = set.filter((name) => !own(name)).map((name) => [name, undefined])
  return { ...env, ...Object.fromEntries(dropped) }
}

/** A denial, unless a person has said why not: then that is put on record, and said. */
export async function letPast(
  context: HookContext,
  denial: string,
  paths: readonly string[],
): Promise<Verdict> {
  const reason = bypassReason(context.env)
  if (!reason) return { deny: denial }
  const input = {
    paths: paths.slice(0, PATHS_MAX),
    reason,
    refusal: shortLine(denial, REFUSAL_MAX),
    request_id: newRequestId(),
  }
  const notice = `Leasehold was bypassed (LEASEHOLD_BYPASS: ${reason})`
  try {
    await context.asking.ask('hook.bypass', input, context.caller)
    return { notice: `${notice}; it is on record. Without it: ${denial}` }
  } catch {
    return { notice: `${notice}, and this could not be put on record. Without it: ${denial}` }
  }
}
