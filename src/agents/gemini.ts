import type { AgentRecord } from './record.ts'

/** Gemini CLI counts in milliseconds. */
const MS = { timeout: 10_000 }
/** Tools of other servers may write; ours need no guard. */
const WRITES = 'write_file|replace|edit|run_shell_command|^mcp_(?!leasehold_)'

export const gemini: AgentRecord = {
  name: 'Gemini CLI',
  isSeen: true,
  isAlone: true,
  setUp: {
    traces: ['.gemini', 'GEMINI.md'],
    programs: ['gemini'],
    settings: { path: '.gemini/settings.json', shape: 'groups', root: {} },
    asks: {
      SessionStart: MS,
      BeforeTool: { matcher: WRITES, ...MS },
      ...{ AfterTool: MS, AfterAgent: MS, SessionEnd: MS },
    },
    // Trusted, or every tool of ours waits for a person.
    servers: [{ path: '.gemini/settings.json', shape: 'trusted' }],
    tools: 'core',
    reads: 'GEMINI.md',
    once:
      'trust the folder when gemini asks: in one that is not trusted, or with --skip-trust, it ' +
      'runs no hook, and its edits are not guarded',
  },
  events: {
    SessionStart: 'session_start',
    SessionEnd: 'session_end',
    BeforeTool: 'before',
    AfterTool: 'alive',
    BeforeAgent: 'alive',
    AfterAgent: 'stop',
    PreCompress: 'alive',
  },
  done: 'AfterTool',
  // Its model reads nothing that is said before a tool: what is to be told is told after it.
  heard: ['AfterTool'],
  input: { session: ['session_id'], tool: 'tool_name', given: 'tool_input' },
  tools: {
    cwd: ['dir_path', 'directory'],
    seeing: {
      tools: /^(?:read_file|write_file|replace|edit)$/,
      fields: ['file_path', 'absolute_path'],
    },
    isToldAfter: true,
  },
  answer: 'gemini',
}
