import { OWN_TOOLS } from './own_tools.ts'
import type { AgentRecord, HookEvent } from './record.ts'

/** Codex and Copilot took these over. */
export const CLAUDE_EVENTS: Record<string, HookEvent> = {
  SessionStart: 'session_start',
  SessionEnd: 'session_end',
  SubagentStart: 'subagent_start',
  SubagentStop: 'subagent_stop',
  PreToolUse: 'before',
  PostToolUse: 'alive',
  PostToolUseFailure: 'alive',
  PostToolBatch: 'alive',
  PermissionRequest: 'alive',
  UserPromptSubmit: 'alive',
  PreCompact: 'alive',
  Stop: 'stop',
  // An error of the model's server, or its limit, has ended the turn.
  StopFailure: 'stop',
}

/** Events whose `additionalContext` the model reads. */
export const CLAUDE_HEARD = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'UserPromptSubmit']

/**
 * All tools but those that are known to write no file, which would pay for a hook at every call: a
 * tool that came with the last release may write. Which subagent calls a tool of ours, only the
 * hook is told.
 */
const READS =
  'Read|NotebookRead|Glob|Grep|LS|LSP|WebFetch|WebSearch|TodoWrite|Task|Agent|Skill|ToolSearch|' +
  'Task[A-Z][a-z]+|BashOutput|KillShell|AskUserQuestion|EnterPlanMode|ExitPlanMode|SendMessage'

export const claude: AgentRecord = {
  name: 'Claude Code',
  isSeen: true,
  isAlone: true,
  setUp: {
    traces: ['.claude', 'CLAUDE.md', 'CLAUDE.local.md'],
    programs: ['claude'],
    settings: { path: '.claude/settings.json', shape: 'groups', root: {} },
    asks: {
      SessionStart: {},
      PreToolUse: { matcher: `^(?!(?:${READS})$).+$` },
      ...{ PostToolUse: {}, SubagentStart: {}, SubagentStop: {}, Stop: {} },
      ...{ PostToolUseFailure: {}, StopFailure: {}, SessionEnd: {} },
    },
    servers: [{ path: '.mcp.json', shape: 'mcpServers' }],
    allow: { at: ['permissions', 'allow'], rules: OWN_TOOLS },
    once: 'trust the folder, and let it use the MCP server of .mcp.json, when claude asks',
    reads: 'CLAUDE.md',
    skill: '.claude/skills/leasehold/SKILL.md',
    // Claude Code may be anywhere in the project when it calls a hook.
    project: `\${CLAUDE_PROJECT_DIR:-.}/`,
  },
  events: CLAUDE_EVENTS,
  done: 'PostToolUse',
  heard: CLAUDE_HEARD,
  input: {
    // VS Code runs these hooks too, and spells the fields of its own another way.
    session: ['session_id', 'sessionId'],
    subagent: 'agent_id',
    transcript: 'transcript_path',
    folder: 'CLAUDE_PROJECT_DIR',
    tool: 'tool_name',
    given: 'tool_input',
    call: 'tool_use_id',
    background: 'background_tasks',
  },
  tools: {
    seeing: {
      tools: /^(?:Read|NotebookRead|Edit|Write|MultiEdit|NotebookEdit|read_file|create_file)$/,
      fields: ['file_path', 'notebook_path', 'filePath'],
    },
    asking: /^(?:Bash$|mcp__.*leasehold)/,
    shell: {
      ...{ usual_ms: 120_000, usual: 'BASH_DEFAULT_TIMEOUT_MS' },
      ...{ most_ms: 600_000, most: 'BASH_MAX_TIMEOUT_MS' },
    },
  },
  answer: 'claude',
}
