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
  prewritecode: 'before',
  preruncommand: 'before',
  premcptooluse: 'before',
  postreadcode: 'alive',
  postwritecode: 'alive',
  postruncommand: 'alive',
  postmcptooluse: 'alive',
  preuserprompt: 'alive',
  postcascaderesponse: 'stop',
}

/** Windsurf, by its documentation: an event for each kind of action, and no word to the model. */
export const windsurf: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input) {
    const name = plainName(event)
    const meant = EVENTS[name]
    if (!meant) return undefined
    const info = fieldsIn(input['tool_info'])
    const files = filesIn(info, 'file_path')
    const tool = `mcp__${textIn(info, 'mcp_server_name')}__${textIn(info, 'mcp_tool_name')}`
    const command = textIn(info, 'command_line')
    return {
      event: meant,
      name: event,
      session: textIn(input, 'trajectory_id'),
      subagent: undefined,
      cwd: textIn(info, 'cwd') ?? process.cwd(),
      files: [],
      ...(name === 'prewritecode' && { files }),
      ...(name === 'preruncommand' && command !== undefined && { command }),
      ...(name === 'premcptooluse' && readTool(tool, fieldsIn(info['mcp_tool_arguments']))),
      ...(/^post(?:read|write)code$/.test(name) && { saw: files }),
    }
  },
  answer({ event }, { deny, notice }) {
    if (event === 'before' && deny !== undefined) return { ...SILENT, err: `${deny}\n`, code: 2 }
    return { ...SILENT, err: notice === undefined ? '' : `${notice}\n` }
  },
}
