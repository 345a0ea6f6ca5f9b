import { resolve } from 'node:path'
import {
  fieldsIn,
  filesIn,
  type HookEvent,
  plainName,
  type Protocol,
  SILENT,
  textIn,
} from './protocol.ts'

const EVENTS: Record<string, HookEvent> = {
  sessionstart: 'session_start',
  sessionend: 'session_end',
  beforetool: 'before',
  aftertool: 'alive',
  beforeagent: 'alive',
  afteragent: 'stop',
  precompress: 'alive',
}

const WRITING = /^(?:write_file|replace|edit)$/
const SEEING = /^(?:read_file|write_file|replace|edit)$/

export const gemini: Protocol = {
  isAlone: true,
  read(event, input) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const isEdit = meant === 'before' && WRITING.test(tool)
    const named = filesIn(given, 'file_path', 'absolute_path')
    const files = isEdit ? named : []
    const command = tool === 'run_shell_command' ? textIn(given, 'command') : undefined
    const cwd = textIn(input, 'cwd') ?? process.cwd()
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'session_id'),
      subagent: undefined,
      cwd: resolve(
        cwd,
        command === undefined ? '' : (textIn(given, 'dir_path', 'directory') ?? ''),
      ),
      files,
      ...(isEdit && tool === 'write_file' && { whole: files }),
      ...(plainName(event) === 'aftertool' && SEEING.test(tool) && { saw: named }),
      ...(isEdit && files.length === 0 && { unread: `this ${tool} names no file` }),
      ...(meant === 'before' && command !== undefined && { command }),
      source: textIn(input, 'source') ?? '',
    }
  },
  /** It reads JSON before it looks at the exit code, so the JSON says all. */
  answer({ event, name }, { deny, context, notice }) {
    const output = {
      ...(event === 'before' && deny !== undefined && { decision: 'deny', reason: deny }),
      ...(deny === undefined &&
        context !== undefined && {
          hookSpecificOutput: { hookEventName: name, additionalContext: context },
        }),
      ...(notice !== undefined && { systemMessage: notice }),
    }
    return Object.keys(output).length === 0
      ? SILENT
      : { ...SILENT, out: `${JSON.stringify(output)}\n` }
  },
}
