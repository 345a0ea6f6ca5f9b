import type { AgentRecord } from './record.ts'

/** Its names are opencode's own; the plugin that `init` writes passes them on. */
export const opencode: AgentRecord = {
  name: 'opencode',
  isSeen: true,
  // One server, many conversations.
  isAlone: false,
  setUp: {
    traces: ['.opencode', 'opencode.json', 'opencode.jsonc'],
    programs: ['opencode'],
    settings: { path: '.opencode/plugin/leasehold.js', shape: 'plugin', root: {} },
    asks: {},
    servers: [{ path: 'opencode.json', shape: 'mcp' }],
    tools: 'core',
  },
  events: {
    'session.created': 'session_start',
    'session.deleted': 'session_end',
    'tool.execute.before': 'before',
    'tool.execute.after': 'alive',
    'session.idle': 'stop',
  },
  done: 'tool.execute.after',
  // The plugin can put words only behind what a tool has said.
  heard: ['tool.execute.after'],
  input: {
    session: ['session_id'],
    parent: 'parent_id',
    tool: 'tool',
    given: 'args',
    call: 'call_id',
  },
  tools: {
    cwd: ['workdir'],
    seeing: { tools: /^(?:read|edit|write|multiedit)$/, fields: ['filePath'] },
    shell: { usual_ms: 120_000 },
  },
  answer: 'opencode',
}
