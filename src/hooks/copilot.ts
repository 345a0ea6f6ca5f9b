import { answerLikeClaude, CLAUDE_EVENTS } from './claude.ts'
import { pathsInEnvelope } from './patches.ts'
import { fieldsIn, filesIn, plainName, type Protocol, textIn } from './protocol.ts'

/** Tools of Copilot CLI and of VS Code that write files; each names them in its own way. */
const WRITING = new Set(
  `create edit insert str_replace str_replace_editor apply_patch create_file replace_string_in_file
  multi_replace_string_in_file insert_edit_into_file edit_notebook_file editFiles`.split(/\s+/),
)
const WHOLE = /^(?:create|create_file)$/
const SEEING = /^(?:view|read_file)$/
const SHELLS = /^(?:bash|powershell|run_in_terminal|runTerminalCommand)$/
const PATHS = ['path', 'filePath', 'file_path']

/** GitHub Copilot, on the command line and in VS Code: Claude Code's events with other tools. */
export const copilot: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input) {
    const meant = CLAUDE_EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
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
    const command = SHELLS.test(tool) ? textIn(given, 'command') : undefined
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'session_id'),
      subagent: textIn(input, 'agent_id'),
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      files,
      ...(isEdit && WHOLE.test(tool) && { whole: files }),
      ...(plainName(event) === 'posttooluse' &&
        (SEEING.test(tool) || WRITING.has(tool)) && { saw: named }),
      ...(isEdit && files.length === 0 && { unread: `this ${tool} names no file` }),
      ...(meant === 'before' && command !== undefined && { command }),
    }
  },
  answer: answerLikeClaude,
}
