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
  taskstart: 'session_start',
  taskresume: 'session_start',
  pretooluse: 'before',
  posttooluse: 'alive',
  userpromptsubmit: 'alive',
  taskcancel: 'stop',
  taskcomplete: 'stop',
  sessionshutdown: 'session_end',
}

/** Cline, by its documentation: a task is a conversation, and each event has a part of its own. */
export const cline: Protocol = {
  // One editor, many tasks.
  isAlone: false,
  read(event, input) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const part = fieldsIn(input['preToolUse'] ?? input['postToolUse'])
    const given = fieldsIn(part['parameters'])
    const asked =
      meant === 'before' ? readTool(textIn(part, 'toolName', 'tool') ?? '', given) : null
    // reason: the field's name in Cline's protocol
    const roots = input['workspaceRoots']
    const root: unknown = Array.isArray(roots) ? roots[0] : undefined
    return {
      event: meant,
      name: event,
      session: textIn(input, 'taskId'),
      subagent: undefined,
      cwd: typeof root === 'string' ? root : process.cwd(),
      hears: /^(?:pre|post)tooluse$/.test(plainName(event)),
      files: [],
      ...asked,
      ...(plainName(event) === 'posttooluse' && { saw: filesIn(given, 'path') }),
    }
  },
  answer({ event }, { deny, context, notice }) {
    const output =
      event === 'before' && deny !== undefined
        ? { cancel: true, errorMessage: deny }
        : { cancel: false, ...(context !== undefined && { contextModification: context }) }
    const err = notice === undefined ? '' : `${notice}\n`
    return { ...SILENT, out: `${JSON.stringify(output)}\n`, err }
  },
}
