import { admits } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import {
  agentId,
  carriedHere,
  commandsBelow,
  type Conversation,
  isOf,
  subagentOf,
} from './conversation.ts'
import { outside, runAbove, startersHere } from './detached.ts'
import { ancestors, seat } from './process.ts'
import { hasRuns } from './run_output.ts'
import { callsOf, hasSessions, readSession, type SessionFile, sessionFiles } from './sessions.ts'

export interface Session {
  agent: string
  /** The agent's own process, which what it holds dies with; null where it is not known. */
  process: ProcessRef | null
}

/** Whose child this process is, as far as hooks, the environment or the system say. */
export interface Family {
  /** None: of nobody that is known. Several: of one of these, which are all of one process. */
  agents: string[]
  alone: boolean
  process: ProcessRef | null
}

/** What an MCP call says of itself, besides what the environment says. */
export interface CallSource {
  conversation?: Conversation | undefined
  /** The id of the call. */
  call?: string | undefined
}

type Known = Pick<SessionFile, 'agents' | 'alone' | 'transcripts'> & Pick<Family, 'process'>

/**
 * The nearest ancestor that hooks know, and of its conversations the one that the client names
 * (`carriedHere`). A name counts only among those: nobody can act as an agent of another process.
 */
export function familyHere(folder: string, env: NodeJS.ProcessEnv, asked: CallSource = {}): Family {
  const known = nearestKnown(folder, env)
  const { conversation } = asked
  const carried = conversation ? [conversation] : carriedHere(env, known?.process ?? null)
  if (!known) return elsewhere(folder, env, carried)
  const { agents, alone, process } = known
  // What several may have let go can have been given any name.
  const said = process
    ? carried.find((each) => agents.some((agent) => isOf(agent, each)))
    : undefined
  const agent = said
    ? agents.find((each) => isOf(each, said))
    : agents.length === 1
      ? agents[0]
      : undefined
  if (agent === undefined) return { agents, alone, process }
  const one = said ?? carried.find(({ subagent }) => subagent !== undefined)
  const own = one ? subagentOf(agent, one) : agent
  const called = own === agent && process ? callerIn(folder, process, asked.call) : undefined
  return { agents: [called ?? own], alone, process }
}

/**
 * An ancestor that hooks know, else the run that we are part of, else who may have let us go. A
 * token says who it stands for: then only hooks tell of a process to hold what it holds.
 */
function nearestKnown(folder: string, env: NodeJS.ProcessEnv): Known | undefined {
  const noted = notedAbove(folder)
  const isTold = Boolean(env['LEASEHOLD_TOKEN'])
  if (noted || isTold || !(hasSessions(folder) || hasRuns(folder))) return noted
  const run = runAbove(folder)
  return run ? { ...run, alone: true } : oneOf(startersHere(folder))
}

function notedAbove(folder: string) {
  for (const { ref } of hasSessions(folder) ? ancestors() : []) {
    const known = readSession(folder, ref)
    if (known.agents.length > 0) return { ...known, process: ref }
  }
  return undefined
}

/** Of several nobody can tell which: it is nobody's process, and so speaks for none of them. */
function oneOf(found: { agents: string[]; process: ProcessRef }[]): Known | undefined {
  if (found.length === 0) return undefined
  const process = found.length === 1 ? found[0]!.process : null
  return { agents: found.flatMap(({ agents }) => agents), alone: true, process }
}

/** The transcripts of the conversations that the nearest agent above us has. */
export function transcriptsHere(folder: string) {
  const { agents = [], transcripts = {}, process } = notedAbove(folder) ?? {}
  return agents.flatMap((agent) => {
    const transcript = transcripts[agent]
    return transcript === undefined ? [] : [{ agent, transcript, process }]
  })
}

/** The subagent whose call this is: by its id, or by the command line of the shell above us. */
function callerIn(folder: string, process: ProcessRef, id: string | undefined) {
  const calls = callsOf(folder, process).map(({ call }) => call)
  if (calls.length === 0) return undefined
  if (id !== undefined) return calls.find((call) => call.id === id)?.agent
  const lines = commandsBelow(process).map(bare)
  const running = calls.filter(({ text }) => {
    return text !== undefined && lines.some((line) => line.includes(bare(text)))
  })
  const agents = new Set(running.map(({ agent }) => agent))
  return agents.size === 1 ? [...agents][0] : undefined
}

/** Clients wrap a command in quotes of their own. */
const bare = (text: string) => text.replaceAll(/['"\\\s\0]/g, '')

/**
 * No ancestor is known: none that hooks have seen can be seen from here. In a sandbox with
 * processes of its own the environment tells whose command this is, and the hooks of that agent,
 * which run outside, have noted its process. Anywhere else there is no process to be had for it.
 */
function elsewhere(folder: string, env: NodeJS.ProcessEnv, carried: Conversation[]): Family {
  const [said] = carried
  if (!said) return oneOf(outside(folder)) ?? { agents: [], alone: false, process: null }
  const base = agentId({ ...said, subagent: undefined }, env, { carried })
  const noted = sessionFiles(folder).find(({ ref, file }) => {
    return ref.seat !== seat && file.agents.includes(base)
  })
  // A person may have been left an environment like that, in a terminal that outlived an agent.
  const alone = noted !== undefined
  return { agents: [subagentOf(base, said)], alone, process: noted?.ref ?? null }
}

/**
 * Who asks where the environment says `said` (`LEASEHOLD_AGENT`): that agent, unless the one that
 * we descend from is nested under it, and has only inherited the name.
 */
export const namedAgent = (said: string | undefined, session: Session | undefined) =>
  session && (said === undefined || admits(said, session.agent)) ? session.agent : said

/** The agent that this process was started by, as far as that is known. */
export function sessionOf({ agents, process }: Family): Session | undefined {
  return agents.length === 1 ? { agent: agents[0]!, process } : undefined
}
