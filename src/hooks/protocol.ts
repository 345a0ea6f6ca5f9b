import type { HookEvent } from '../agents/record.ts'

/** What an agent is about to do, has done, or has become: the same for every agent. */
export interface HookCall {
  event: HookEvent
  /** The conversation; undefined where the agent did not say. */
  session: string | undefined
  /** Set where a subagent is meant. */
  subagent: string | undefined
  /** Where the client writes down what happens in the conversation. */
  transcript?: string | undefined
  /** Where relative paths begin. */
  cwd: string
  /** Files that are about to be written (or, after the fact, were). */
  files: string[]
  /** Texts in the input that may name a file: one that is there counts as written. */
  named?: string[]
  /** Files that are about to be written whole, not edited. */
  whole?: string[]
  /** Files that a tool has just read or written. */
  saw?: string[]
  /** Why nobody can say what the tool would write, although it would write something. */
  unread?: string | undefined
  /** A tool that we do not know, and that sounds as if it wrote files: nobody can say which. */
  unknown?: string | undefined
  /** The id of this use of a tool, the same before and after it. */
  tool_call?: string | undefined
  /** A shell command that is about to run. */
  command?: string
  /** The id of a subagent's call that may ask us through another door: a tool of ours, a shell. */
  asks?: string | undefined
  /** How long that command may take. */
  timeout_ms?: number
  /** At the end of a turn: something of the agent goes on in the background. */
  busy?: boolean
  /** At the start of a conversation: whether it is new, goes on, or is the copy of another. */
  source?: string
  /** The agent reads what is said of this event. */
  hears?: boolean
  /** The event as the agent's own protocol spells it, for the answer. */
  name: string
}

/** What comes of it, before it is put in the words of a protocol. */
export interface Verdict {
  /** Why it must not happen, for the agent; undefined: nothing is in the way. */
  deny?: string
  /** For the agent to know. */
  context?: string
  /** For the person who watches. */
  notice?: string
  /** Variables that the agent's later commands should have. */
  env?: Record<string, string>
}

/** What the hook's process says, and how it exits. */
export interface Answer {
  out: string
  err: string
  code: number
}

export type HookFields = Record<string, unknown>

export const SILENT: Answer = { out: '', err: '', code: 0 }

/** `PreToolUse`, `preToolUse` and `pre-tool-use` are one event. */
export const plainName = (event: string) => event.replaceAll(/[^A-Za-z]/g, '').toLowerCase()

export const textIn = (fields: HookFields, ...names: (string | undefined)[]) =>
  names.map((name) => (name === undefined ? undefined : fields[name])).find(isText)

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

export const fieldsIn = (value: unknown): HookFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as HookFields) : {}

export function numberIn(fields: HookFields, name: string): number | undefined {
  const value = fields[name]
  return typeof value === 'number' && value > 0 ? value : undefined
}

/** The file that a tool's input names under one of `names`, and those of the edits in it. */
export function filesIn(given: HookFields, ...names: string[]): string[] {
  const edits: unknown[] = Array.isArray(given['edits']) ? given['edits'] : []
  return [given, ...edits.map(fieldsIn)].flatMap((each) => textIn(each, ...names) ?? [])
}
