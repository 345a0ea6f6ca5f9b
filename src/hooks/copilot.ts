import { answerLikeClaude, CLAUDE_EVENTS } from './claude.ts'
import { pathsInEnvelope } from './patches.ts'
import { fieldsIn, filesIn, plainName, type Protocol, textIn } from './protocol.ts'

/** Tools of VS Code that write files, and those of Copilot CLI under Claude Code's names. */
const WRITING = new Set(
  `create edit write multiedit apply_patch create_file replace_string_in_file editfiles
  multi_replace_string_in_file insert_edit_into_file edit_notebook_file`.split(/\s+/),
)
const WHOLE = new Set(['create', 'write', 'create_file'])
const SHELLS = new Set(['bash', 'powershell', 'run_in_terminal', 'runterminalcommand'])
const PATHS = ['path', 'filePath', 'file_path']

/** GitHub Copilot, on the command line and in VS Code: Claude Code's events with other fields. */
export const copilot: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input) {
    const meant = CLAUDE_EVENTS[plainName(event)]
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
      session: textIn(input, 'parent_agent_id', 'session_id'),
      subagent,
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      files,
      ...(isEdit && WHOLE.has(tool) && { whole: files }),
      ...(plainName(event) === 'posttooluse' && command === undefined && { saw: named }),
      ...(isEdit && files.length === 0 && { unread: `this ${tool} names no file` }),
      ...(meant === 'before' && command !== undefined && { command }),
    }
  },
  answer: answerLikeClaude,
}
