import { answerLikeClaude, CLAUDE_EVENTS, HEARD } from './claude.ts'
import { pathsInEnvelope } from './patches.ts'
import { fieldsIn, type HookEvent, plainName, type Protocol, textIn } from './protocol.ts'
import { readTool } from './tools.ts'

const EVENTS: Record<string, HookEvent> = {
  ...CLAUDE_EVENTS,
  postcompact: 'alive',
  // A person has stopped the turn.
  interrupt: 'stop',
  // `notify` in config.toml: a turn is over. It says so in its argument, not on a pipe.
  notify: 'stop',
}

/** Codex has taken over Claude Code's protocol; its edits are patches in the field `command`. */
export const codex: Protocol = {
  // An editor's extension runs many conversations in one process.
  isAlone: false,
  read(event, input) {
    const meant = EVENTS[plainName(event)]
    if (!meant) return undefined
    const tool = textIn(input, 'tool_name') ?? ''
    const given = fieldsIn(input['tool_input'])
    const isDone = plainName(event) === 'posttooluse' && tool === 'apply_patch'
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'session_id', 'thread-id'),
      subagent: textIn(input, 'agent_id'),
      transcript: textIn(input, 'transcript_path'),
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      hears: HEARD.test(plainName(event)),
      tool_call: textIn(input, 'tool_use_id'),
      ...(meant === 'before' ? readTool(tool, given) : { files: [] }),
      ...(isDone && { saw: pathsInEnvelope(textIn(given, 'command', 'input', 'patch') ?? '') }),
    }
  },
  answer(call, verdict) {
    const answer = answerLikeClaude(call, verdict)
    // Of these two Codex wants JSON even where there is nothing to say.
    const wantsJson = call.event === 'stop' || call.event === 'subagent_stop'
    return wantsJson && answer.out === '' ? { ...answer, out: '{}\n' } : answer
  },
}
