import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { AgentRecord, InputFields, ToolFields } from '../agents/record.ts'
import { homeFolder } from '../machine/login.ts'
import { pathsInEnvelope } from './patches.ts'
import {
  fieldsIn,
  filesIn,
  type HookCall,
  type HookFields,
  numberIn,
  plainName,
  textIn,
} from './protocol.ts'
import { readTool } from './tools.ts'

type Env = NodeJS.ProcessEnv

const isOneOf = (name: string, events: readonly string[] = []) =>
  events.some((each) => plainName(each) === name)

/** What is meant by an event of this agent and its input; undefined when it is none of ours. */
export function readCall(
  { events, done, heard, edited, input: at, tools }: AgentRecord,
  event: string,
  input: HookFields,
  env: Env,
): HookCall | undefined {
  const name = plainName(event)
  const [, meant] = Object.entries(events).find(([each]) => plainName(each) === name) ?? []
  if (!meant) return undefined
  const tool = textIn(input, at.tool) ?? ''
  // A patch may stand there as it is.
  const patch = textIn(input, at.given)
  const given = patch === undefined ? fieldsIn(input[at.given]) : { patch }
  const isDone = isOneOf(name, done === undefined ? [] : [done])
  const who = whoIn(at, input)
  const call = textIn(input, at.call)
  return {
    event: meant === 'stop' && at.parent && who.subagent ? 'subagent_stop' : meant,
    name: textIn(input, 'hook_event_name', 'hookEventName') ?? event,
    ...who,
    tool_call: call,
    transcript: textIn(input, at.transcript) ?? transcriptAt(at, who.session, env),
    hears: isOneOf(name, heard),
    cwd: resolve(folderIn(at, input, env), textIn(given, ...(tools.cwd ?? [])) ?? ''),
    files: isOneOf(name, edited) ? filesIn(input, 'file_path') : [],
    ...(meant === 'before' && toolAt(at, tools, tool, given, input, env)),
    ...(isDone && tools.isToldAfter && { files: readTool(tool, given).files }),
    ...(isDone && sawIn(tools, tool, given)),
    ...(who.subagent && tools.asking?.test(tool) && { asks: call }),
    busy: isBusy(at, input),
    source: textIn(input, 'source') ?? '',
  }
}

function whoIn(at: InputFields, input: HookFields): Pick<HookCall, 'session' | 'subagent'> {
  const [own, parent] = [textIn(input, ...at.session), textIn(input, at.parent)]
  const nested = at.subagent ?? (parent && at.session[0])
  return { session: parent ?? own, subagent: textIn(input, nested) }
}

function folderIn(at: InputFields, input: HookFields, env: Env): string {
  const roots = at.roots === undefined ? undefined : input[at.roots]
  const root: unknown = Array.isArray(roots) ? roots[0] : undefined
  const usual = (at.folder && env[at.folder]) || process.cwd()
  return textIn(input, 'cwd') ?? (typeof root === 'string' ? root : usual)
}

function toolAt(
  at: InputFields,
  tools: ToolFields,
  tool: string,
  given: HookFields,
  input: HookFields,
  env: Env,
): Pick<HookCall, 'files'> {
  const { unread, command: run, ...asked } = readTool(tool, given)
  const command = textIn(input, at.command) ?? run
  const { shell } = tools
  return {
    ...asked,
    ...(unread !== undefined && (tools.isGuessed ? { unknown: tool } : { unread })),
    ...(command !== undefined && { command }),
    ...(command !== undefined && shell && { timeout_ms: shellTimeout(shell, given, env) }),
  }
}

function shellTimeout(
  { usual_ms, most_ms = Infinity, usual = '', most = '' }: NonNullable<ToolFields['shell']>,
  given: HookFields,
  env: Env,
): number {
  const unless_ms = Number(env[usual]) || usual_ms
  const at_most_ms = Math.max(Number(env[most]) || most_ms, unless_ms)
  return Math.min(numberIn(given, 'timeout') ?? unless_ms, at_most_ms)
}

function sawIn({ seeing, patched }: ToolFields, tool: string, given: HookFields) {
  if (patched?.tools.test(tool)) {
    return { saw: pathsInEnvelope(textIn(given, ...patched.fields) ?? '') }
  }
  // What a shell is given beside its command is where, not what.
  if (!seeing?.tools.test(tool) || textIn(given, 'command') !== undefined) return {}
  return { saw: filesIn(given, ...seeing.fields) }
}

/** Shells and subagents in the background outlive the turn that started them. */
function isBusy({ background }: InputFields, input: HookFields): boolean {
  const tasks = background === undefined ? undefined : input[background]
  return Array.isArray(tasks) && tasks.some((each) => fieldsIn(each)['status'] !== 'completed')
}

function transcriptAt({ transcripts }: InputFields, session = '', env: Env): string | undefined {
  if (!transcripts || !/^[\w-]+$/.test(session)) return undefined
  const home = env[transcripts.home] || join(homeFolder(env, '/'), transcripts.usual)
  const path = join(home, transcripts.path.replace('SESSION', session))
  return existsSync(path) ? path : undefined
}
