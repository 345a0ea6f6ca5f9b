import {
  closeSync,
  type FSWatcher,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  watch,
} from 'node:fs'
import { dirname } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { literalGlob } from '../core/paths/glob.ts'
import { Refusal } from '../core/refusal.ts'
import { transcriptsHere } from '../machine/family.ts'
import { sessionsFolder } from '../machine/sessions.ts'
import type { ShownReservation } from '../operations/reservations.ts'
import { Asking } from './asking.ts'
import { EDITING, type HookContext, isOwn, reservationsIn } from './context.ts'
import { callerFor } from './identity.ts'
import { endGuard } from './net.ts'
import { fieldsIn, type HookFields, textIn, type Verdict } from './protocol.ts'

const PATHS_AT_ONCE = 100

/**
 * Between two turns an agent may wait for a person for hours: what its edits reserved is given
 * back, and the next edit reserves again. What it asked for itself it keeps for as long as it said.
 */
export async function endTurn({
  asking,
  caller,
}: Pick<HookContext, 'asking' | 'caller'>): Promise<Verdict> {
  const items = await reservationsIn({ asking, caller })
  const places = new Map<string, ShownReservation[]>()
  for (const item of items) {
    if (!isOwn(caller, item) || item.reason !== EDITING) continue
    const key = JSON.stringify([item.checkout, item.project])
    places.set(key, [...(places.get(key) ?? []), item])
  }
  for (const [first, ...rest] of places.values()) {
    const paths = [first!, ...rest].map(({ path }) => path)
    for (let at = 0; at < paths.length; at += PATHS_AT_ONCE) {
      const input = {
        paths: paths.slice(at, at + PATHS_AT_ONCE),
        checkout: first!.checkout,
        ...(first!.project !== null && { project: first!.project }),
        process: caller.process,
      }
      await asking.ask('reserve.release', input, caller).catch(ignoreLost)
    }
    const { checkout } = first!
    endGuard(asking.folder, (each) => {
      const isTheirs = each.holder === caller.agent || !caller.given
      return isTheirs && each.checkout === checkout && paths.includes(literalGlob(each.name))
    })
  }
  return {}
}

/** Over since it was listed, or of another process with our id: then it is not ours to release. */
function ignoreLost(error: unknown): void {
  if (!(error instanceof Refusal) || error.code === 'unavailable') throw error
}

/*
 * Turns that end without a hook: a person has pressed Esc (Claude Code, Copilot), or the model's
 * server has failed (Codex). These clients write so into their transcript. `leasehold mcp` runs
 * beside the conversation for as long as it lasts, and looks there.
 */

/** A turn writes much; its end is the last of it. */
const SOON_MS = 300
/** Where a folder cannot be watched. */
const LOOK_MS = 1_000
/** Of a transcript its end is read. */
const TAIL_BYTES = 64 * 1024

/**
 * Gives back what edits have reserved as soon as the turn is over. Looks when something is written
 * there, and at nothing else: an idle conversation costs nothing. Returns what ends the watch.
 */
export function watchTurns(folder: string, env: NodeJS.ProcessEnv, cwd: string): () => void {
  const sizes = new Map<string, number>()
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  const lookIn = (ms: number) => {
    timer ??= setTimeout(look, ms).unref()
  }
  const hear = (path: string) => {
    if (watchers.has(path)) return
    try {
      const watcher = watch(path, { persistent: false }, () => lookIn(SOON_MS))
      watchers.set(path, watcher)
      watcher.on('error', () => {
        watcher.close()
        watchers.delete(path)
        lookIn(LOOK_MS)
      })
    } catch {
      lookIn(LOOK_MS)
    }
  }
  const look = () => {
    timer = undefined
    hear(sessionsFolder(folder))
    for (const { agent, process, transcript } of attempt(() => transcriptsHere(folder), [])) {
      hear(dirname(transcript))
      const size = attempt(() => statSync(transcript).size, 0)
      if (sizes.get(transcript) === size) continue
      sizes.set(transcript, size)
      if (!isTurnOver(transcript)) continue
      const asking = new Asking(env, cwd)
      endTurn({ asking, caller: callerFor(agent, process, env) })
        .catch(() => {
          sizes.delete(transcript)
          lookIn(LOOK_MS)
        })
        .finally(() => asking.close())
        .catch(() => undefined)
    }
  }
  // Hooks make it too; who watches must be there first.
  attempt(() => mkdirSync(sessionsFolder(folder), { mode: 0o700 }), undefined)
  look()
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
  }
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
    // Of Copilot.
    case 'abort':
      return true
    case 'user.message':
    case 'assistant.turn_start':
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
