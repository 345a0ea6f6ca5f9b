import { answerLikeClaude, CLAUDE_EVENTS } from './claude.ts'
import { pathsInEnvelope } from './patches.ts'
import { fieldsIn, filesIn, type HookEvent, plainName, type Protocol, textIn } from './protocol.ts'

/** Tools of VS Code that write files, and those of Copilot CLI under Claude Code's names. */
const WRITING = new Set(
  `create edit write multiedit apply_patch create_file replace_string_in_file editfiles
  multi_replace_string_in_file insert_edit_into_file edit_notebook_file`.split(/\s+/),
)
const WHOLE = new Set(['create', 'write', 'create_file'])
const SHELLS = new Set(['bash', 'powershell', 'run_in_terminal', 'runterminalcommand'])
const PATHS = ['path', 'filePath', 'file_path']

/** An error ends the turn, and Copilot CLI has no event of Claude Code's for that. */
const EVENTS: Record<string, HookEvent> = { ...CLAUDE_EVENTS, erroroccurred: 'stop' }

/** GitHub Copilot, on the command line and in VS Code: Claude Code's events with other fields. */
export const copilot: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = (textIn(input, 'tool_name') ?? '').toLowerCase()
    const given = fieldsIn(input['tool_input'])
    const isEdit = meant === 'before' && WRITING.has(tool)
    const lists = ['replacements', 'files'].flatMap((name) =>
      Array.isArray(given[name]) ? (given[name] as unknown[]) : [],
    )
    const listed = lists.flatMap((each) =>
      typeof each === 'string' ? each : filesIn(fieldsIn(each), ...PATHS),
    )
    const patch = textIn(given, 'input', 'patch') ?? textIn(input, 'tool_input') ?? ''
    const named = [...filesIn(given, ...PATHS), ...listed]
    const files = isEdit ? [...named, ...pathsInEnvelope(patch)] : []
    const command = SHELLS.has(tool) ? textIn(given, 'command') : undefined
    const subagent = textIn(input, 'agent_id')
    return {
      // A subagent's turn ends by an event of its own before the one that says so.
      event: meant === 'stop' && subagent !== undefined ? 'subagent_stop' : meant,
      name: textIn(input, 'hook_event_name') ?? event,
      // On the command line a subagent is a conversation of its own that names its parent.
      session: textIn(input, 'parent_agent_id', 'session_id', 'sessionId'),
      subagent,
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      files,
      ...(isEdit && WHOLE.has(tool) && { whole: files }),
      ...(plainName(event) === 'posttooluse' && command === undefined && { saw: named }),
      ...(isEdit && files.length === 0 && { unread: `this ${tool} names no file` }),
      ...(meant === 'before' && command !== undefined && { command }),
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
