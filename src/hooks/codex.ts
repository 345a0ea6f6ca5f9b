import { answerLikeClaude, CLAUDE_EVENTS } from './claude.ts'
import { pathsAdded, pathsInEnvelope } from './patches.ts'
import { fieldsIn, type HookEvent, plainName, type Protocol, textIn } from './protocol.ts'

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
    const command = textIn(fieldsIn(input['tool_input']), 'command', 'input', 'patch')
    const isPatch = meant === 'before' && tool === 'apply_patch'
    const files = isPatch ? pathsInEnvelope(command ?? '') : []
    return {
      event: meant,
      name: textIn(input, 'hook_event_name') ?? event,
      session: textIn(input, 'session_id', 'thread-id'),
      subagent: textIn(input, 'agent_id'),
      transcript: textIn(input, 'transcript_path'),
      cwd: textIn(input, 'cwd') ?? process.cwd(),
      files,
      ...(plainName(event) === 'posttooluse' &&
        tool === 'apply_patch' && { saw: pathsInEnvelope(command ?? '') }),
      ...(isPatch && { whole: pathsAdded(command ?? '') }),
      ...(isPatch && files.length === 0 && { unread: 'this patch names no file' }),
      ...(meant === 'before' && tool === 'Bash' && command !== undefined && { command }),
    }
  },
  answer(call, verdict) {
    const answer = answerLikeClaude(call, verdict)
    // Of these two Codex wants JSON even where there is nothing to say.
    const wantsJson = call.event === 'stop' || call.event === 'subagent_stop'
    return wantsJson && answer.out === '' ? { ...answer, out: '{}\n' } : answer
  },
}
