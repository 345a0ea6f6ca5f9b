import { admits, type Caller } from '../../core/caller.ts'
import { argument, word } from '../../core/quote.ts'
import { type Details, Refusal } from '../../core/refusal.ts'
import type { Operation } from '../../operations/operation.ts'
import type { FileConfig } from '../../daemon/config/schema.ts'
import { settingsIn } from '../../stores/place.ts'

interface Asked {
  /** `lock release`: what was typed. */
  command: string
  operation: Operation
  input: Record<string, unknown>
  caller: Caller
  /** An agent asks, which may be nobody else. */
  isAgent: boolean
}

/** A refusal for a person, with the flags of this very command that would get them further. */
export function withHints(error: unknown, asked: Asked): unknown {
  if (!(error instanceof Refusal)) return error
  const { code, message, details } = error
  const said = 'issues' in details ? [] : error.actions
  return new Refusal(code, message, { next: [...said, ...hintsFor(error, asked)], details })
}

function* hintsFor({ code, details }: Refusal, asked: Asked): Generator<string> {
  const { command, caller, isAgent } = asked
  if ('issues' in details) {
    yield* scopeHint(asked)
    yield `See: leasehold ${command} --help`
  } else if (code === 'held') {
    yield* heldHints(details, asked)
  } else if (code === 'fence_stale') {
    const { holder, current_fence } = details
    if (typeof holder !== 'string') return
    if (admits(holder, caller.agent))
      yield `To go on under your latest lease: --fence ${String(current_fence)}`
    else if (!isAgent) yield otherwise(holder, caller)
  } else if (code === 'not_found' && details['scope'] === 'global') {
    yield 'It may be in the scope of a project: --scope project:NAME'
  } else if (code === 'forbidden') {
    const { assigned_to, admin } = details
    if (admin === true) yield 'As the login that owns the store: --force'
    if (typeof assigned_to === 'string' && !isAgent) yield otherwise(assigned_to, caller)
  }
}

function* heldHints(
  { holder, fence, by_you }: Details,
  { operation: { input }, input: given, caller, isAgent }: Asked,
): Generator<string> {
  if ('wait_seconds' in input) yield 'To wait for it: --wait 30s'
  if (by_you === true) {
    if ('takeover' in input && given['takeover'] !== true)
      yield 'To take it from the other process: --takeover'
    else if ('fence' in input) yield `To speak for that lease: --fence ${String(fence)}`
  } else if (typeof holder === 'string' && !isAgent) yield otherwise(holder, caller)
}

const otherwise = (agent: string, caller: Caller) =>
  `You ask as ${word(caller.agent)}. If you are ${word(agent)}: --agent ${argument(agent)}`

/** That no config.json here names the agent that a task asks for, in a sentence. */
export function unknownAgent(
  folder: string,
  { agent_command, project }: Record<string, unknown>,
): string | undefined {
  if (typeof agent_command !== 'string') return undefined
  const config = settingsIn(folder) as Partial<FileConfig> | undefined
  const own = config?.projects?.[String(project)]?.agent
  const known = [...new Set([...Object.keys(config?.agents ?? {}), ...(own ? [own] : [])])]
  if (config === undefined || known.includes(agent_command)) return undefined
  const has = known.length > 0 ? `it names ${known.map(word).join(', ')}` : 'it names none'
  return `config.json here names no agent ${word(agent_command)} for that project; ${has}`
}

/** A bare word is most often meant as the name of a project. */
function* scopeHint({ input, operation }: Asked): Generator<string> {
  const { scope } = input
  if (!('scope' in operation.input) || typeof scope !== 'string' || !/^[\w.-]+$/.test(scope)) return
  yield `For the project of that name: --scope project:${scope}`
}
