/** What an agent's event means to us. */
export type HookEvent =
  | 'session_start'
  | 'session_end'
  | 'subagent_start'
  | 'subagent_stop'
  /** Before a tool runs: the only moment at which something can be refused. */
  | 'before'
  /** A tool has run, a prompt came: the agent is alive. */
  | 'alive'
  /** A turn is over; the conversation may go on. */
  | 'stop'

/**
 * A coding agent, as far as we meet it: how it is found and set up, what its events mean, where in
 * their input is what, and how it wants an answer. Hooks, `init`, `doctor`, plugins and pages read
 * this and know nothing of an agent besides.
 */
export interface AgentRecord {
  name: string
  /** Whether `npm run clients` has met the real program; else this is by its documentation. */
  isSeen: boolean
  /** Whether one process has one conversation at a time. */
  isAlone: boolean
  setUp: SetUp
  /** Its events, as it spells them; case and dashes do not count. */
  events: Record<string, HookEvent>
  /** The event by which a tool has run, and what it read or wrote is known. */
  done?: string
  /** Events of which the model reads what is said. */
  heard: string[]
  /** Events that say themselves which file was edited. */
  edited?: string[]
  input: InputFields
  tools: ToolFields
  answer: AnswerStyle
  /** At an end it wants JSON, also where there is nothing to say. */
  jsonAtEnd?: boolean
}

/** How `init` finds an agent and what it writes for it. */
export interface SetUp {
  /** What in a checkout says that somebody uses it here. */
  traces: string[]
  programs: string[]
  /** Where its hooks are kept, and in which shape; a plugin is a program of ours that asks. */
  settings: { path: string; shape: HookShape | 'plugin'; root: Record<string, unknown> }
  /** The events that it is to ask about, and which tools; an agent may count in milliseconds. */
  asks: Record<string, { matcher?: string; timeout?: number }>
  /** Where its MCP servers are named. */
  servers: { path: string; shape: ServerShape }[]
  /** Its model is sent every tool with every request: it gets only those that most need. */
  tools?: 'core'
  /** What it may use without asking a person, and where its settings say so. */
  allow?: AllowedTools
  /** What a person has to say once, on its own screen, so that what is here counts. */
  once?: string
  /** The file that it reads by itself, instead of AGENTS.md. */
  reads?: string
  /** Where it finds skills. */
  skill?: string
  /** What it puts in front of paths of the project, where hooks may be called from anywhere. */
  project?: string
}

/**
 * How settings hold hooks: in groups with a matcher each, as plain lists of commands, or as lists
 * of commands that say so.
 */
export type HookShape = 'groups' | 'plain' | 'typed'
/** How settings name servers: under which key of a JSON file, or in TOML. */
export type ServerShape = 'mcpServers' | 'trusted' | 'servers' | 'mcp' | 'toml'

/** A list in an agent's settings, and what it says. */
export interface AllowedTools {
  at: [section: string, list: string]
  rules: string[]
}

/** Where in the input of a hook is what; of several names the first that is there counts. */
export interface InputFields {
  session: string[]
  /** A subagent is a conversation of its own that names its parent here. */
  parent?: string
  subagent?: string
  transcript?: string
  /** Where transcripts are kept, if the input does not say so: SESSION stands for the id. */
  transcripts?: { home: string; usual: string; path: string }
  /** Folders that an editor has open. */
  roots?: string
  /** The variable that names the folder, if the input does not. */
  folder?: string
  tool: string
  given: string
  /** The id of this use of a tool. */
  call?: string
  /** A shell command outside of any tool. */
  command?: string
  /** What goes on in the background when a turn ends. */
  background?: string
}

/** What is known of an agent's tools. Most is told by the shape of their input: hooks/tools.ts. */
export interface ToolFields {
  /** The folder in which a tool works. */
  cwd?: string[]
  /** Tools after which the agent knows a file as it is, and the fields that name it. */
  seeing?: { tools: RegExp; fields: string[] }
  /** Its edits are patches: these fields hold one. */
  patched?: { tools: RegExp; fields: string[] }
  /** Tools that may lead back to us; only the hook is told which subagent calls them. */
  asking?: RegExp
  /** What its shell gives a command that names no timeout, and the most it gives any. */
  shell?: { usual_ms: number; most_ms?: number; usual?: string; most?: string }
  /** Before a tool its model hears nothing: of what that will write it is told afterwards. */
  isToldAfter?: boolean
  /** The input of most tools is not documented: one that names no file may write none. */
  isGuessed?: boolean
}

/** See hooks/answers.ts. */
export type AnswerStyle = 'claude' | 'copilot' | 'gemini' | 'cursor' | 'opencode'
