import { shortLine } from '../core/one_line.ts'
import { uniqueId } from '../machine/digest.ts'
import type { HookContext } from './context.ts'
import type { Verdict } from './protocol.ts'

const REASON_MAX = 500
const REFUSAL_MAX = 2_000
const PATHS_MAX = 100

/** Why a person wants this let past, in the environment of the agent or of git. */
export const bypassReason = ({ LEASEHOLD_BYPASS: said }: NodeJS.ProcessEnv) =>
  said === undefined ? undefined : shortLine(said.trim(), REASON_MAX)

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
    refusal: denial.slice(0, REFUSAL_MAX).toWellFormed(),
    request_id: uniqueId(),
  }
  const notice = `Leasehold was bypassed (LEASEHOLD_BYPASS: ${reason})`
  try {
    await context.asking.ask('hook.bypass', input, context.caller)
    return { notice: `${notice}; it is on record. Without it: ${denial}` }
  } catch {
    return { notice: `${notice}, and this could not be put on record. Without it: ${denial}` }
  }
}
