import {
  fieldsIn,
  filesIn,
  type HookEvent,
  numberIn,
  plainName,
  type Protocol,
  SILENT,
  textIn,
} from './protocol.ts'
import { readTool } from './tools.ts'

/** opencode's own names; the plugin that `init` writes passes them on. */
const EVENTS: Record<string, HookEvent> = {
  sessioncreated: 'session_start',
  sessiondeleted: 'session_end',
  toolexecutebefore: 'before',
  toolexecuteafter: 'alive',
  sessionidle: 'stop',
}

const SEEING = /^(?:read|edit|write|multiedit)$/
/** What its shell gives a command that names no timeout. */
const SHELL_MS = 120_000

export const opencode: Protocol = {
  // One server, many conversations.
  isAlone: false,
  read(event, input) {
    const [meant, tool] = [EVENTS[plainName(event)], textIn(input, 'tool') ?? '']
    if (!meant) return undefined
    const given = fieldsIn(input['args'])
    const patch = textIn(given, 'patchText')
    const asked = meant === 'before' ? readTool(tool, { ...given, patch }) : { files: [] }
    const isDone = plainName(event) === 'toolexecuteafter'
    const isShell = asked.command !== undefined
    // A subagent is a conversation of its own that names its parent.
    const [own, parent] = [textIn(input, 'session_id'), textIn(input, 'parent_id')]
    return {
      event: meant === 'stop' && parent !== undefined ? 'subagent_stop' : meant,
      name: event,
      session: parent ?? own,
      subagent: parent === undefined ? undefined : own,
      tool_call: textIn(input, 'call_id'),
      cwd: (isShell && textIn(given, 'workdir')) || (textIn(input, 'cwd') ?? process.cwd()),
      // The plugin can put words only behind what a tool has said.
      hears: isDone,
      ...asked,
      ...(isDone && SEEING.test(tool) && { saw: filesIn(given, 'filePath') }),
      ...(isShell && { timeout_ms: numberIn(given, 'timeout') ?? SHELL_MS }),
    }
  },
  /** The plugin reads this, and does what opencode wants of plugins. */
  answer: (_, { deny, context, notice, env }) => ({
    ...SILENT,
    out: `${JSON.stringify({ deny, context, env })}\n`,
    err: notice === undefined ? '' : `${notice}\n`,
  }),
}
