import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { homeFolder } from '../machine/login.ts'
import { answerLikeClaude, CLAUDE_EVENTS, HEARD } from './claude.ts'
import { fieldsIn, filesIn, type HookEvent, plainName, type Protocol, textIn } from './protocol.ts'
import { readTool } from './tools.ts'

const SEEN = ['path', 'filePath', 'file_path']

/** An error ends the turn, and Copilot CLI has no event of Claude Code's for that. */
const EVENTS: Record<string, HookEvent> = { ...CLAUDE_EVENTS, erroroccurred: 'stop' }

/** Where the command line writes down a conversation; it says so only when a turn ends. */
function transcriptOf(session = '', env: NodeJS.ProcessEnv): string | undefined {
  const home = env['COPILOT_HOME'] || join(homeFolder(env, '/'), '.copilot')
  const path = join(home, 'session-state', session, 'events.jsonl')
  return /^[\w-]+$/.test(session) && existsSync(path) ? path : undefined
}

/** GitHub Copilot, on the command line and in VS Code: Claude Code's events with other fields. */
export const copilot: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input, env) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    // A patch may stand there as it is.
    const patch = textIn(input, 'tool_input')
    const given = patch === undefined ? fieldsIn(input['tool_input']) : { patch }
    const { command, ...asked } = meant === 'before' ? readTool(tool, given) : { files: [] }
    const isDone = plainName(event) === 'posttooluse'
    const subagent = textIn(input, 'agent_id')
    // On the command line a subagent is a conversation of its own that names its parent.
    const session = textIn(input, 'parent_agent_id', 'session_id', 'sessionId')
    return {
      // A subagent's turn ends by an event of its own before the one that says so.
      event: meant === 'stop' && subagent !== undefined ? 'subagent_stop' : meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session,
      subagent,
      transcript: textIn(input, 'transcript_path') ?? transcriptOf(session, env),
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      hears: HEARD.test(plainName(event)),
      tool_call: textIn(input, 'tool_use_id'),
      ...asked,
      ...(isDone && textIn(given, 'command') === undefined && { saw: filesIn(given, ...SEEN) }),
      ...(command !== undefined && { command }),
    }
  },
  /** VS Code reads what is in `hookSpecificOutput`, the command line what is beside it. */
  answer(call, verdict) {
    const { out, ...rest } = answerLikeClaude(call, verdict)
    if (out === '') return { ...rest, out }
    const said = JSON.parse(out) as { hookSpecificOutput?: object }
    const both = { ...said.hookSpecificOutput, ...said }
    // Not exit 2: with that the command line tells its model the number, and not the reason.
    return { ...rest, out: `${JSON.stringify(both)}\n`, code: 0 }
  },
}
