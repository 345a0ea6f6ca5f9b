import {
  type Answer,
  type HookFields,
  fieldsIn,
  filesIn,
  type HookCall,
  type HookEvent,
  numberIn,
  plainName,
  type Protocol,
  SILENT,
  textIn,
  type Verdict,
} from './protocol.ts'
import { readTool } from './tools.ts'

/** Claude Code's events, by their names without case and dashes. */
export const CLAUDE_EVENTS: Record<string, HookEvent> = {
  sessionstart: 'session_start',
  sessionend: 'session_end',
  subagentstart: 'subagent_start',
  subagentstop: 'subagent_stop',
  pretooluse: 'before',
  posttooluse: 'alive',
  posttoolusefailure: 'alive',
  posttoolbatch: 'alive',
  permissionrequest: 'alive',
  userpromptsubmit: 'alive',
  precompact: 'alive',
  stop: 'stop',
  // An error of the model's server, or its limit, has ended the turn.
  stopfailure: 'stop',
}

/** Tools after which an agent knows a file as it is, and the fields that name it. */
const SEEING = /^(?:Read|NotebookRead|Edit|Write|MultiEdit|NotebookEdit|read_file|create_file)$/
const SEEN = ['file_path', 'notebook_path', 'filePath']

/** Events whose `additionalContext` the model reads. */
export const HEARD = /^(?:pretooluse|posttooluse|posttoolusefailure|userpromptsubmit)$/

/** Tools that may lead back to us. Only the hook is told which subagent calls them. */
const ASKING = /^(?:Bash$|mcp__.*leasehold)/

/** What the Bash tool gives a command that names no timeout, and the most it gives any. */
const SHELL_MS = 120_000
const SHELL_MS_MAX = 600_000

export const claude: Protocol = {
  isAlone: true,
  read(event, input, env) {
    const name = textIn(input, 'hook_event_name', 'hookEventName') ?? event
    const meant = CLAUDE_EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const isDone = plainName(event) === 'posttooluse'
    const { command, ...asked } = meant === 'before' ? readTool(tool, given) : { files: [] }
    return {
      event: meant,
      name,
      // VS Code runs these hooks too, and spells the fields of its own another way.
      session: textIn(input, 'session_id', 'sessionId'),
      subagent: textIn(input, 'agent_id'),
      tool_call: textIn(input, 'tool_use_id'),
      transcript: textIn(input, 'transcript_path'),
      hears: HEARD.test(plainName(event)),
      cwd: textIn(input, 'cwd') ?? env['CLAUDE_PROJECT_DIR'] ?? process.cwd(),
      ...asked,
      ...(isDone && SEEING.test(tool) && { saw: filesIn(given, ...SEEN) }),
      ...(command !== undefined && { command, timeout_ms: shellTimeout(given, env) }),
      ...(textIn(input, 'agent_id') && ASKING.test(tool) && { asks: textIn(input, 'tool_use_id') }),
      busy: isBusy(input),
      source: textIn(input, 'source') ?? '',
    }
  },
  answer: answerLikeClaude,
}

function shellTimeout(given: HookFields, env: NodeJS.ProcessEnv): number {
  const usual_ms = Number(env['BASH_DEFAULT_TIMEOUT_MS']) || SHELL_MS
  const most_ms = Math.max(Number(env['BASH_MAX_TIMEOUT_MS']) || SHELL_MS_MAX, usual_ms)
  return Math.min(numberIn(given, 'timeout') ?? usual_ms, most_ms)
}

/** Shells and subagents in the background outlive the turn that started them. */
function isBusy(input: HookFields): boolean {
  const tasks = input['background_tasks']
  return Array.isArray(tasks) && tasks.some((each) => fieldsIn(each)['status'] !== 'completed')
}

/**
 * Claude Code's answers, which Codex took over. A refusal says it in both ways that there are: exit
 * 2 with the reason on stderr, which every version obeys and nothing overrides, and the JSON of
 * newer ones, so that they show a denial and not a failure. `allow` is never said: it would skip
 * the permissions of the person at the keyboard.
 */
export function answerLikeClaude({ event, name, hears }: HookCall, verdict: Verdict): Answer {
  const { deny, context, notice } = verdict
  const denial = { permissionDecision: 'deny', permissionDecisionReason: deny }
  const asked = event === 'before'
  const speaks = asked || hears || event === 'session_start' || event === 'subagent_start'
  const specific = {
    hookEventName: name,
    ...(asked && deny !== undefined && denial),
    ...(deny === undefined && context !== undefined && { additionalContext: context }),
  }
  const isHeard = speaks && Object.keys(specific).length > 1
  const output = {
    ...(isHeard && { hookSpecificOutput: specific }),
    ...(notice !== undefined && { systemMessage: notice }),
  }
  const out = Object.keys(output).length > 0 ? `${JSON.stringify(output)}\n` : ''
  if (asked && deny !== undefined) return { out, err: `${deny}\n`, code: 2 }
  return { ...SILENT, out, err: notice === undefined ? '' : `${notice}\n` }
}
