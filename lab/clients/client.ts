import type { Step } from './model.ts'
import type { Call } from './wires.ts'

/** Where a client works in a trial. */
export interface Place {
  repo: string
  home: string
  /** Of the scripted model. */
  port: number
}

type Env = Record<string, string>

/** What a model asks for, in the words of one client's tools. */
interface Words {
  read: (path: string) => Call
  edit: (path: string, from: string, to: string) => Call
  /** Writes a whole file, new or not. */
  write: (path: string, text: string) => Call
  /** Where `write` makes new files only: what puts another in the place of one. */
  replace?: (path: string, text: string) => Call[]
  shell: (command: string) => Call
  /** Where permissions know a command by its first word only: ours is not permitted as a whole. */
  isAskedForOurs?: boolean
  remove?: (path: string) => Call
  move?: (from: string, to: string) => Call
  mcp: (tool: string, input: object) => Call
  /** Has a subagent play a script; the steps that it takes. */
  subagent?: (script: string) => Step[]
}

/** One program that people run, as npm has it. */
export interface Client {
  kind: string
  name: string
  npm: string
  version: string
  /** Below node_modules. */
  program: string
  env: (world: Place) => Env
  /** Settings of its own that a person makes when they first use it. */
  prepare: (world: Place) => void | Promise<void>
  /** Where it loads tools of MCP servers when they are wanted: what has to be set, and how. */
  loading?: { env: Env; load: (tools: string[]) => Call }
  /** What a person does on its screen once, after `leasehold init`. */
  trust?: (world: Place, env: Env) => Promise<void>
  /** Arguments for one turn without a terminal, all permitted. */
  once: (prompt: string) => string[]
  /** The same as people have it who permit edits, and no more. */
  usual: (prompt: string) => string[]
  /** Conversations that can be named, so that one goes on although another is newer. */
  named?: {
    begin: (prompt: string, id: string) => string[]
    /** The id that the client chose, where it takes none. */
    idIn: (printed: string) => string | undefined
    resume: (prompt: string, id: string) => string[]
  }
  /** Arguments for a terminal. */
  typed: (prompt: string) => string[]
  /** A server that terminals join, where a client has one. */
  shared?: {
    serve: string[]
    addressIn: (printed: string) => string | undefined
    join: (address: string, prompt: string) => string[]
  }
  /** How often Esc is pressed until it stops; once, unless said. */
  escapes?: number
  /** Installs our plugin from the folder of our package, where a client has plugins. */
  plug?: (folder: string) => string
  words: (world: Place) => Words
}
