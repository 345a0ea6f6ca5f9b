import { pathsInEnvelope } from './patches.ts'
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

/** Tools that write; the documentation shows no input but the shell's, so every name is tried. */
const WRITING = /^(?:Write|Edit|MultiEdit|StrReplace|Delete|EditNotebook|ApplyPatch|TabWrite)$/
const PATHS = ['file_path', 'path', 'target_file', 'filePath', 'notebook_path', 'target_notebook']
const PATCHES = ['patch', 'input', 'command', 'diff']

export const cursor: Protocol = {
  // One editor, many conversations.
  isAlone: false,
  read(event, input, env) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const command =
      textIn(input, 'command') ?? (tool === 'Shell' ? textIn(given, 'command') : undefined)
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'conversation_id', 'session_id'),
      subagent: undefined,
      cwd: cwdOf(input, given, env),
      files: filesOf(plainName(event), tool, input, given),
      ...(meant === 'before' && command !== undefined && { command }),
    }
  },
  answer({ event, name }, { deny, context, notice, env }): Answer {
    const asked = event === 'before'
    if (asked && deny !== undefined) {
      return says({ permission: 'deny', user_message: deny, agent_message: deny })
    }
    const err = notice === undefined ? '' : `${notice}\n`
    if (event === 'session_start') return { ...says({ additional_context: context, env }), err }
    // A prompt goes on unless it is refused; in the other events an empty object is no opinion.
    if (plainName(name) === 'beforesubmitprompt') return { ...says({ continue: true }), err }
    return { ...says({}), err }
  },
}

/** JSON, always: with `failClosed` an answer that is none blocks. */
const says = (output: object): Answer => ({ ...SILENT, out: `${JSON.stringify(output)}\n` })

function filesOf(event: string, tool: string, input: HookFields, given: HookFields): string[] {
  const isEdited = event === 'afterfileedit' || event === 'aftertabfileedit'
  const file = isEdited ? textIn(input, 'file_path') : undefined
  if (file !== undefined) return [file]
  if (event !== 'pretooluse' || !WRITING.test(tool)) return []
  return [...filesIn(given, ...PATHS), ...pathsInEnvelope(textIn(given, ...PATCHES) ?? '')]
}

function cwdOf(input: HookFields, given: HookFields, env: NodeJS.ProcessEnv): string {
  // reason: the field's name in Cursor's protocol
  const roots = input['workspace_roots']
  const root: unknown = Array.isArray(roots) ? roots[0] : undefined
  const said = textIn(given, 'working_directory') ?? textIn(input, 'cwd')
  return said ?? (typeof root === 'string' ? root : (env['CURSOR_PROJECT_DIR'] ?? process.cwd()))
}
