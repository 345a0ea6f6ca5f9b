import {
  type Answer,
  type HookFields,
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
  pretooluse: 'before',
  beforeshellexecution: 'before',
  posttooluse: 'alive',
  posttoolusefailure: 'alive',
  aftershellexecution: 'alive',
  aftermcpexecution: 'alive',
  afterfileedit: 'alive',
  aftertabfileedit: 'alive',
  afteragentresponse: 'alive',
  beforesubmitprompt: 'alive',
  subagentstart: 'alive',
  subagentstop: 'alive',
  precompact: 'alive',
  stop: 'stop',
}

export const cursor: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input, env) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const isAsked = plainName(event) === 'pretooluse'
    const { unread, ...asked } = isAsked
      ? readTool(tool, given)
      : { files: editedIn(plainName(event), input), unread: undefined }
    // The event of the shell says it outside of any tool.
    const command = textIn(input, 'command') ?? asked.command
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'conversation_id', 'session_id'),
      subagent: undefined,
      cwd: cwdOf(input, given, env),
      hears: plainName(event) === 'posttooluse',
      ...asked,
      // Its documentation shows the input of no tool but the shell's.
      ...(unread !== undefined && { unknown: tool }),
      ...(meant === 'before' && command !== undefined && { command }),
    }
  },
  answer({ event, name, hears }, { deny, context, notice, env }): Answer {
    const asked = event === 'before'
    if (asked && deny !== undefined) {
      return says({ permission: 'deny', user_message: deny, agent_message: deny })
    }
    const err = notice === undefined ? '' : `${notice}\n`
    if (event === 'session_start') return { ...says({ additional_context: context, env }), err }
    // A prompt goes on unless it is refused; in the other events an empty object is no opinion.
    if (plainName(name) === 'beforesubmitprompt') return { ...says({ continue: true }), err }
    return { ...says(hears && context !== undefined ? { additional_context: context } : {}), err }
  },
}

/** JSON, always: with `failClosed` an answer that is none blocks. */
const says = (output: object): Answer => ({ ...SILENT, out: `${JSON.stringify(output)}\n` })

/** After the fact, an edit says so itself. */
function editedIn(event: string, input: HookFields): string[] {
  if (event !== 'afterfileedit' && event !== 'aftertabfileedit') return []
  return filesIn(input, 'file_path')
}

function cwdOf(input: HookFields, given: HookFields, env: NodeJS.ProcessEnv): string {
  // reason: the field's name in Cursor's protocol
  const roots = input['workspace_roots']
  const root: unknown = Array.isArray(roots) ? roots[0] : undefined
  const said = textIn(given, 'working_directory') ?? textIn(input, 'cwd')
  return said ?? (typeof root === 'string' ? root : (env['CURSOR_PROJECT_DIR'] ?? process.cwd()))
}
