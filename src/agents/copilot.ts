import { CLAUDE_EVENTS, CLAUDE_HEARD } from './claude.ts'
import type { AgentRecord } from './record.ts'

/** GitHub Copilot, on the command line and in VS Code: Claude Code's events with other fields. */
export const copilot: AgentRecord = {
  name: 'GitHub Copilot',
  isSeen: true,
  // One editor, many conversations.
  isAlone: false,
  setUp: {
    traces: ['.github/hooks', '.github/copilot-instructions.md'],
    programs: ['copilot'],
    settings: { path: '.github/hooks/leasehold.json', shape: 'typed', root: { version: 1 } },
    asks: {
      ...{ SessionStart: {}, PreToolUse: {}, PostToolUse: {} },
      ...{ SubagentStart: {}, SubagentStop: {}, Stop: {}, SessionEnd: {}, errorOccurred: {} },
    },
    servers: [
      { path: '.mcp.json', shape: 'mcpServers' },
      { path: '.vscode/mcp.json', shape: 'servers' },
    ],
  },
  // An error ends the turn, and Copilot CLI has no event of Claude Code's for that.
  events: { ...CLAUDE_EVENTS, errorOccurred: 'stop' },
  done: 'PostToolUse',
  heard: CLAUDE_HEARD,
  input: {
    session: ['session_id', 'sessionId'],
    parent: 'parent_agent_id',
    subagent: 'agent_id',
    transcript: 'transcript_path',
    // The command line says where it is only when a turn ends.
    transcripts: {
      ...{ home: 'COPILOT_HOME', usual: '.copilot' },
      path: 'session-state/SESSION/events.jsonl',
    },
    tool: 'tool_name',
    given: 'tool_input',
    call: 'tool_use_id',
  },
  tools: { seeing: { tools: /./, fields: ['path', 'filePath', 'file_path'] } },
  answer: 'copilot',
}
