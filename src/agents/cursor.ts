import type { AgentRecord } from './record.ts'

const WRITES = 'Write|Edit|MultiEdit|StrReplace|Delete|EditNotebook|ApplyPatch|TabWrite'

export const cursor: AgentRecord = {
  name: 'Cursor',
  isSeen: false,
  // One editor, many conversations.
  isAlone: false,
  setUp: {
    traces: ['.cursor', '.cursorrules'],
    programs: ['cursor', 'cursor-agent'],
    settings: { path: '.cursor/hooks.json', shape: 'plain', root: { version: 1 } },
    asks: {
      sessionStart: {},
      preToolUse: { matcher: WRITES },
      // Older versions have no preToolUse: there the shell is guarded, and edits are at least seen.
      // reason: Cursor's own name for it.
      ...{ beforeShellExecution: {}, afterFileEdit: {} },
      ...{ postToolUse: {}, subagentStop: {}, stop: {}, sessionEnd: {} },
    },
    servers: [{ path: '.cursor/mcp.json', shape: 'mcpServers' }],
  },
  events: {
    sessionStart: 'session_start',
    sessionEnd: 'session_end',
    preToolUse: 'before',
    // reason: Cursor's own name for it.
    beforeShellExecution: 'before',
    postToolUse: 'alive',
    postToolUseFailure: 'alive',
    // reason: Cursor's own names for them.
    ...{ afterShellExecution: 'alive', afterMCPExecution: 'alive' },
    afterFileEdit: 'alive',
    afterTabFileEdit: 'alive',
    afterAgentResponse: 'alive',
    beforeSubmitPrompt: 'alive',
    subagentStart: 'alive',
    subagentStop: 'alive',
    preCompact: 'alive',
    stop: 'stop',
  },
  heard: ['postToolUse'],
  edited: ['afterFileEdit', 'afterTabFileEdit'],
  input: {
    session: ['conversation_id', 'session_id'],
    // reason: the field's name in Cursor's protocol
    roots: 'workspace_roots',
    folder: 'CURSOR_PROJECT_DIR',
    tool: 'tool_name',
    given: 'tool_input',
    command: 'command',
  },
  tools: { cwd: ['working_directory'], isGuessed: true },
  answer: 'cursor',
}
