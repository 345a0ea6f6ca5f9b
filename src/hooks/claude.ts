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

/** Tools that write one file, and the field that names it. */
const WRITING: Record<string, string> = {
  Edit: 'file_path',
  Write: 'file_path',
  MultiEdit: 'file_path',
  NotebookEdit: 'notebook_path',
}

/** Tools after which an agent knows a file as it is. */
const SEEING: Record<string, string> = {
  ...WRITING,
  Read: 'file_path',
  NotebookRead: 'notebook_path',
}

/** Tools that may lead back to us. Only the hook is told which subagent calls them. */
const ASKING = /^(?:Bash$|mcp__.*leasehold)/

/** What the Bash tool gives a command that names no timeout, and the most it gives any. */
const SHELL_MS = 120_000
const SHELL_MS_MAX = 600_000

export const claude: Protocol = {
  isAlone: true,
  read(event, input, env) {
    const name = textIn(input, 'hook_event_name') ?? event
    const meant = CLAUDE_EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const isEdit = meant === 'before' && Object.hasOwn(WRITING, tool)
    const isDone = plainName(event) === 'posttooluse'
    const files = isEdit ? filesIn(given, WRITING[tool]!) : []
    return {
      event: meant,
      name,
      session: textIn(input, 'session_id'),
      subagent: textIn(input, 'agent_id'),
      transcript: textIn(input, 'transcript_path'),
      cwd: textIn(input, 'cwd') ?? env['CLAUDE_PROJECT_DIR'] ?? process.cwd(),
      files,
      ...(isEdit && tool === 'Write' && { whole: files }),
      ...(isDone && Object.hasOwn(SEEING, tool) && { saw: filesIn(given, SEEING[tool]!) }),
      ...(isEdit && files.length === 0 && { unread: `this ${tool} names no file` }),
      ...(meant === 'before' && tool === 'Bash' && shellCall(given, env)),
      ...(textIn(input, 'agent_id') && ASKING.test(tool) && { asks: textIn(input, 'tool_use_id') }),
      busy: isBusy(input),
      source: textIn(input, 'source') ?? '',
    }
  },
  answer: answerLikeClaude,
}

function shellCall(
  given: HookFields,
  env: NodeJS.ProcessEnv,
): Pick<HookCall, 'command' | 'timeout_ms'> {
  const command = textIn(given, 'command')
  const usual_ms = Number(env['BASH_DEFAULT_TIMEOUT_MS']) || SHELL_MS
  const most_ms = Math.max(Number(env['BASH_MAX_TIMEOUT_MS']) || SHELL_MS_MAX, usual_ms)
  const timeout_ms = Math.min(numberIn(given, 'timeout') ?? usual_ms, most_ms)
  return command === undefined ? {} : { command, timeout_ms }
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
export function answerLikeClaude({ event, name }: HookCall, verdict: Verdict): Answer {
  const { deny, context, notice } = verdict
  const denial = { permissionDecision: 'deny', permissionDecisionReason: deny }
  const asked = event === 'before'
  const speaks = asked || event === 'session_start' || event === 'subagent_start'
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
