import type { AgentRecord, AnswerStyle } from '../agents/record.ts'
import { type Answer, type HookCall, plainName, SILENT, type Verdict } from './protocol.ts'

type Style = (call: HookCall, verdict: Verdict) => Answer

const lineOf = (output: object) => `${JSON.stringify(output)}\n`
const errOf = ({ notice }: Verdict) => (notice === undefined ? '' : `${notice}\n`)

/**
 * Claude Code's answers, which Codex took over. A refusal says it in both ways that there are: exit
 * 2 with the reason on stderr, which every version obeys and nothing overrides, and the JSON of
 * newer ones, so that they show a denial and not a failure. `allow` is never said: it would skip
 * the permissions of the person at the keyboard.
 */
const likeClaude: Style = ({ event, name, hears }, verdict) => {
  const { deny, context, notice } = verdict
  const denial = { permissionDecision: 'deny', permissionDecisionReason: deny }
  const asked = event === 'before'
  const speaks = asked || hears || event === 'session_start' || event === 'subagent_start'
  const specific = {
    hookEventName: name,
    ...(asked && deny !== undefined && denial),
    ...(deny === undefined && context !== undefined && { additionalContext: context }),
  }
  const isHeard = speaks && Object.keys(specific).length > 1
  const output = {
    ...(isHeard && { hookSpecificOutput: specific }),
    ...(notice !== undefined && { systemMessage: notice }),
  }
  const out = Object.keys(output).length > 0 ? lineOf(output) : ''
  if (asked && deny !== undefined) return { out, err: `${deny}\n`, code: 2 }
  return { ...SILENT, out, err: errOf(verdict) }
}

const STYLES: Record<AnswerStyle, Style> = {
  claude: likeClaude,
  /** VS Code reads what is in `hookSpecificOutput`, the command line what is beside it. */
  copilot(call, verdict) {
    const { out, ...rest } = likeClaude(call, verdict)
    if (out === '') return { ...rest, out }
    const said = JSON.parse(out) as { hookSpecificOutput?: object }
    // Not exit 2: with that the command line tells its model the number, and not the reason.
    return { ...rest, out: lineOf({ ...said.hookSpecificOutput, ...said }), code: 0 }
  },
  /** It reads JSON before it looks at the exit code, so the JSON says all. */
  gemini({ event, name }, { deny, context, notice }) {
    const specific = { hookEventName: name, additionalContext: context }
    const output = {
      ...(event === 'before' && deny !== undefined && { decision: 'deny', reason: deny }),
      ...(deny === undefined && context !== undefined && { hookSpecificOutput: specific }),
      ...(notice !== undefined && { systemMessage: notice }),
    }
    return Object.keys(output).length === 0 ? SILENT : { ...SILENT, out: lineOf(output) }
  },
  /** JSON, always: with `failClosed` an answer that is none blocks. */
  cursor({ event, name, hears }, verdict) {
    const { deny, context, env } = verdict
    const says = (output: object, err = '') => ({ ...SILENT, out: lineOf(output), err })
    if (event === 'before' && deny !== undefined) {
      return says({ permission: 'deny', user_message: deny, agent_message: deny })
    }
    const err = errOf(verdict)
    if (event === 'session_start') return says({ additional_context: context, env }, err)
    // A prompt goes on unless it is refused; in the other events an empty object is no opinion.
    if (plainName(name) === 'beforesubmitprompt') return says({ continue: true }, err)
    return says(hears && context !== undefined ? { additional_context: context } : {}, err)
  },
  /** The plugin reads this, and does what opencode wants of plugins. */
  opencode: (_, { deny, context, env, ...rest }) => ({
    ...{ ...SILENT, out: lineOf({ deny, context, env }) },
    err: errOf(rest),
  }),
}

/** A verdict in the words of an agent's protocol. */
export function answerFor(agent: AgentRecord, call: HookCall, verdict: Verdict): Answer {
  const said = STYLES[agent.answer](call, verdict)
  const isEnd = call.event === 'stop' || call.event === 'subagent_stop'
  return agent.jsonAtEnd && isEnd && said.out === '' ? { ...said, out: '{}\n' } : said
}
