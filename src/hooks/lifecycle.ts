import { appendFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { admits } from '../core/caller.ts'
import { literalGlob } from '../core/paths/glob.ts'
import { Refusal } from '../core/refusal.ts'
import type { ShownReservation } from '../operations/reservations.ts'
import { dropSession, keepSession } from '../machine/sessions.ts'
import { briefFor } from './brief.ts'
import { letPast } from './bypass.ts'
import { EDITING, type HookContext, isOwn } from './context.ts'
import { giveSign, guardTool } from './guard.ts'
import { keptAmong } from './kept.ts'
import type { HookCall, Verdict } from './protocol.ts'
import type { Effects } from './shell/effects.ts'
import { endGuard } from './net.ts'
import { noteSeen, unseenChange } from './seen.ts'
import { unreadText } from './wording.ts'

const LISTED_MAX = 1_000
const PAGES_MAX = 10
const PATHS_AT_ONCE = 100

/** What a hook does about an event of its agent. */
export async function handle(
  context: HookContext,
  call: HookCall,
  effects: Effects,
  isAlone: boolean,
): Promise<Verdict> {
  const { caller, around, env, settings } = context
  // First of all, because nothing has to be asked for it.
  const kept = keptAmong(effects, around.folder, env)
  if (kept) return letPast(context, kept.text, [kept.path])
  if (call.unread !== undefined && settings.mode !== 'warn') {
    return letPast(context, unreadText(call.unread), [call.cwd])
  }
  if (call.event === 'session_end') return endSession(context)
  if (caller.process) {
    // A subagent's commands cannot be told from its parent's: the process is the parent.
    const agent = call.subagent === undefined ? caller.agent : parentOf(caller.agent)
    const isFork = call.event === 'session_start' && call.source === 'fork'
    keepSession(around.folder, caller.process, agent, isAlone && !isFork ? 'alone' : 'among')
  }
  switch (call.event) {
    case 'before':
      return guardBefore(context, call, effects)
    case 'session_start':
      return beginSession(context)
    case 'subagent_start':
      return { context: await briefFor(context) }
    case 'subagent_stop':
      // Of a protocol that does not say which one ended, nothing is known to be over; nor of a
      // token, in whose name all of them have what they have.
      return call.subagent === undefined || !caller.given
        ? giveSign(context, call, effects)
        : releaseAll(context, false)
    case 'stop':
      return call.busy ? giveSign(context, call, effects) : endTurn(context)
    case 'alive':
      noteSeen(context, call)
      return giveSign(context, call, effects)
  }
}

/** What others have, and then what they have changed: an agent that was refused writes nothing. */
async function guardBefore(
  context: HookContext,
  call: HookCall,
  effects: Effects,
): Promise<Verdict> {
  const verdict = await guardTool(context, call, effects)
  const unseen = verdict.deny === undefined ? unseenChange(context, call) : undefined
  if (!unseen) return verdict
  if (context.settings.mode !== 'warn') return letPast(context, unseen.text, [unseen.path])
  return { ...verdict, context: [verdict.context, unseen.text].filter(Boolean).join('\n') }
}

const parentOf = (agent: string) => agent.slice(0, agent.lastIndexOf('/'))

async function beginSession(context: HookContext): Promise<Verdict> {
  const { env, caller } = context
  // With a token it is not ours to say who asks: any other name would be refused.
  if (!caller.given) return { context: await briefFor(context) }
  const file = env['CLAUDE_ENV_FILE']
  // Later commands of this agent find their name there. One that was given is there already.
  if (file && isAbsolute(file) && !env['LEASEHOLD_AGENT']) {
    appendFileSync(file, `export LEASEHOLD_AGENT='${caller.agent}'\n`)
  }
  return { context: await briefFor(context), env: { LEASEHOLD_AGENT: caller.agent } }
}

/** All that the conversation had, its subagents' too. The process may begin another one. */
function endSession(context: HookContext): Promise<Verdict> {
  const { caller, around } = context
  endGuard(context, ({ holder }) => admits(caller.agent, holder))
  if (caller.process) dropSession(around.folder, caller.process, caller.agent)
  return releaseAll(context, true)
}

async function releaseAll({ asking, caller }: HookContext, nested: boolean): Promise<Verdict> {
  await asking.ask('reserve.release', { nested, process: caller.process }, caller)
  return {}
}

/**
 * Between two turns an agent may wait for a person for hours: what its edits reserved is given
 * back, and the next edit reserves again. What it asked for itself it keeps for as long as it said.
 */
async function endTurn(context: HookContext): Promise<Verdict> {
  const { asking, caller } = context
  const items = await listed(asking, caller)
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
    endGuard(context, (each) => {
      const isTheirs = each.holder === caller.agent || !caller.given
      return isTheirs && each.checkout === checkout && paths.includes(literalGlob(each.name))
    })
  }
  return {}
}

/** Every reservation there is, page by page, within reason. */
async function listed(
  asking: HookContext['asking'],
  caller: HookContext['caller'],
): Promise<ShownReservation[]> {
  const found: ShownReservation[] = []
  let after: string | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const input = { limit: LISTED_MAX, ...(after !== undefined && { after }) }
    const { items, next } = await asking.ask('reserve.list', input, caller)
    found.push(...items)
    if (next === null) break
    after = next
  }
  return found
}

/** Over since it was listed, or of another process with our id: then it is not ours to release. */
function ignoreLost(error: unknown): void {
  if (!(error instanceof Refusal) || error.code === 'unavailable') throw error
}
