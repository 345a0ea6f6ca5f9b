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
  agentspawn: 'session_start',
  userpromptsubmit: 'alive',
  pretooluse: 'before',
  posttooluse: 'alive',
  stop: 'stop',
}

/** Kiro, by its documentation: what a hook prints at a start is read by the model. */
export const kiro: Protocol = {
  isAlone: true,
  read(event, input) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const given = fieldsIn(input['tool_input'])
    const asked = meant === 'before' ? readTool(textIn(input, 'tool_name') ?? '', given) : null
    return {
      event: meant,
      name: event,
      session: textIn(input, 'session_id'),
      subagent: undefined,
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      files: [],
      ...asked,
      ...(plainName(event) === 'posttooluse' && { saw: filesIn(given, 'path', 'file_path') }),
    }
  },
  answer({ event }, { deny, context, notice }) {
    if (event === 'before' && deny !== undefined) return { ...SILENT, err: `${deny}\n`, code: 2 }
    const out = event === 'session_start' && context !== undefined ? `${context}\n` : ''
    return { ...SILENT, out, err: notice === undefined ? '' : `${notice}\n` }
  },
}
