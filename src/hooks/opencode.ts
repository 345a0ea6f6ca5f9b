import { pathsInEnvelope } from './patches.ts'
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

/** opencode's own names; the plugin that `init` writes passes them on. */
const EVENTS: Record<string, HookEvent> = {
  sessioncreated: 'session_start',
  sessiondeleted: 'session_end',
  toolexecutebefore: 'before',
  toolexecuteafter: 'alive',
  sessionidle: 'stop',
}

const WRITING = /^(?:edit|write|multiedit|patch|apply_patch)$/
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
    const isEdit = meant === 'before' && WRITING.test(tool)
    const named = filesIn(given, 'filePath', 'path')
    const files = isEdit ? [...named, ...pathsInEnvelope(textIn(given, 'patchText') ?? '')] : []
    const command = meant === 'before' && tool === 'bash' ? textIn(given, 'command') : undefined
    const timeout_ms = numberIn(given, 'timeout') ?? SHELL_MS
    // A subagent is a conversation of its own that names its parent.
    const [own, parent] = [textIn(input, 'session_id'), textIn(input, 'parent_id')]
    return {
      event: meant === 'stop' && parent !== undefined ? 'subagent_stop' : meant,
      name: event,
      session: parent ?? own,
      subagent: parent === undefined ? undefined : own,
      cwd: (command && textIn(given, 'workdir')) ?? textIn(input, 'cwd') ?? process.cwd(),
      files,
      ...(isEdit && tool === 'write' && { whole: files }),
      ...(plainName(event) === 'toolexecuteafter' && SEEING.test(tool) && { saw: named }),
      ...(isEdit && files.length === 0 && { unread: `this ${tool} names no file` }),
      ...(command !== undefined && { command, timeout_ms }),
    }
  },
  /** The plugin reads this, and does what opencode wants of plugins. */
  answer: (_, { deny, context, notice, env }) => ({
    ...SILENT,
    out: `${JSON.stringify({ deny, context, env })}\n`,
    err: notice === undefined ? '' : `${notice}\n`,
  }),
}
