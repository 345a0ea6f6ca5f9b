import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { attempt } from '../core/attempt.ts'
import { transcriptsHere } from '../machine/family.ts'
import { Asking } from './asking.ts'
import { callerFor } from './identity.ts'
import { endTurn } from './turn_end.ts'
import { fieldsIn, type HookFields, textIn } from './protocol.ts'

/*
 * Turns that end without a hook: a person has pressed Esc (Claude Code), or the model's server has
 * failed (Codex). Both clients write so into their transcript. `leasehold mcp` runs beside the
 * conversation for as long as it lasts, and looks there.
 */

const LOOK_MS = 1_000
/** Of a transcript its end is read. */
const TAIL_BYTES = 64 * 1024

/** Gives back what edits have reserved as soon as the turn is over. Returns what ends the watch. */
export function watchTurns(folder: string, env: NodeJS.ProcessEnv, cwd: string): () => void {
  const sizes = new Map<string, number>()
  const look = () => {
    for (const { agent, process, transcript } of attempt(() => transcriptsHere(folder), [])) {
      const size = attempt(() => statSync(transcript).size, 0)
      if (sizes.get(transcript) === size) continue
      sizes.set(transcript, size)
      if (!isTurnOver(transcript)) continue
      const asking = new Asking(env, cwd)
      endTurn({ asking, caller: callerFor(agent, process, env) })
        .catch(() => sizes.delete(transcript))
        .finally(() => asking.close())
        .catch(() => undefined)
    }
  }
  const timer = setInterval(look, LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Whether the last turn in a transcript is over without an answer. */
export function isTurnOver(path: string): boolean {
  const lines = attempt(() => tailOf(path).split('\n'), [])
  for (const line of lines.toReversed()) {
    const isOver = endIn(attempt(() => fieldsIn(JSON.parse(line)), {}))
    if (isOver !== undefined) return isOver
  }
  return false
}

/** What Claude Code writes in the name of the user. */
const INTERRUPTED = '[Request interrupted by user'
const CODEX_ENDS = new Set(['task_complete', 'turn_complete', 'turn_aborted'])

/** What a record says of the turn; undefined where it says nothing. */
function endIn(record: HookFields): boolean | undefined {
  const payload = fieldsIn(record['payload'])
  switch (record['type']) {
    case 'event_msg':
      return CODEX_ENDS.has(textIn(payload, 'type') ?? '') ? true : undefined
    case 'response_item':
    case 'turn_context':
    case 'assistant':
      return record['isSidechain'] === true ? undefined : false
    case 'user':
      return record['isSidechain'] === true ? undefined : isInterruption(record)
    default:
      return undefined
  }
}

function isInterruption(record: HookFields): boolean {
  const { content } = fieldsIn(record['message'])
  const parts: unknown[] = Array.isArray(content) ? content : [{ text: content }]
  return parts.some((part) => textIn(fieldsIn(part), 'text')?.startsWith(INTERRUPTED))
}

function tailOf(path: string): string {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES))
    readSync(file, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8')
  } finally {
    closeSync(file)
  }
}
