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
import { readTool } from './tools.ts'

const EVENTS: Record<string, HookEvent> = {
  sessionstart: 'session_start',
  sessionend: 'session_end',
  beforetool: 'before',
  aftertool: 'alive',
  beforeagent: 'alive',
  afteragent: 'stop',
  precompress: 'alive',
}

const SEEING = /^(?:read_file|write_file|replace|edit)$/

export const gemini: Protocol = {
  isAlone: true,
  read(event, input) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const isDone = plainName(event) === 'aftertool'
    const { files, ...asked } = readTool(tool, given)
    const cwd = textIn(input, 'cwd') ?? process.cwd()
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'session_id'),
      subagent: undefined,
      cwd: resolve(cwd, textIn(given, 'dir_path', 'directory') ?? ''),
      // Its model reads nothing that is said before a tool: what is to be told is told after it.
      hears: isDone,
      files: meant === 'before' || isDone ? files : [],
      ...(meant === 'before' && asked),
      ...(isDone && SEEING.test(tool) && { saw: filesIn(given, 'file_path', 'absolute_path') }),
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
