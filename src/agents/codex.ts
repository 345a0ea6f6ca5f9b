import { CLAUDE_EVENTS, CLAUDE_HEARD } from './claude.ts'
import type { AgentRecord } from './record.ts'

/** Codex gives the hooks of an end no more. */
const END = { timeout: 3 }

/** Codex has taken over Claude Code's protocol; its edits are patches. */
export const codex: AgentRecord = {
  name: 'Codex',
  isSeen: true,
  // An editor's extension runs many conversations in one process.
  isAlone: false,
  setUp: {
    traces: ['.codex'],
    programs: ['codex'],
    settings: { path: '.codex/hooks.json', shape: 'groups', root: {} },
    asks: {
      SessionStart: {},
      PreToolUse: { matcher: 'Bash|apply_patch|Edit|Write|write_stdin|mcp__.*' },
      ...{ PostToolUse: {}, SubagentStart: {}, SubagentStop: {}, Stop: {} },
      ...{ Interrupt: END, SessionEnd: END },
    },
    servers: [{ path: '.codex/config.toml', shape: 'toml' }],
  },
  events: {
    ...CLAUDE_EVENTS,
    PostCompact: 'alive',
    // A person has stopped the turn.
    Interrupt: 'stop',
    // `notify` in config.toml: a turn is over. It says so in its argument, not on a pipe.
    notify: 'stop',
  },
  done: 'PostToolUse',
  heard: CLAUDE_HEARD,
  input: {
    session: ['session_id', 'thread-id'],
    subagent: 'agent_id',
    transcript: 'transcript_path',
    tool: 'tool_name',
    given: 'tool_input',
    call: 'tool_use_id',
  },
  tools: { patched: { tools: /^apply_patch$/, fields: ['command', 'input', 'patch'] } },
  answer: 'claude',
  jsonAtEnd: true,
}
