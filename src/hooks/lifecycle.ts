import { appendFileSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { admits } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import { dropCall, dropCalls, dropSession, keepCall, keepSession } from '../machine/sessions.ts'
import { briefFor } from './brief.ts'
import { letPast } from './bypass.ts'
import type { HookContext } from './context.ts'
import { giveSign, guardTool } from './guard.ts'
import { keptAmong } from './kept.ts'
import type { HookCall, Verdict } from './protocol.ts'
import type { Effects } from './shell/effects.ts'
import { endGuard } from './net.ts'
import { noteSeen, unseenChange } from './seen.ts'
import { endTurn } from './turns.ts'
import { unreadText } from './wording.ts'

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
    const how = isAlone && !isFork ? 'alone' : 'among'
    keepSession(around.folder, caller.process, agent, how, call.transcript)
    if (call.asks) noteCall(around.folder, caller.process, caller.agent, call)
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
      if (caller.process) dropCalls(around.folder, caller.process, caller.agent)
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

/** A subagent's call that may reach us through another door, which cannot tell whose it is. */
function noteCall(
  folder: string,
  process: ProcessRef,
  agent: string,
  { event, asks, command }: HookCall,
): void {
  if (event === 'before') keepCall(folder, process, { id: asks!, agent, text: command })
  else dropCall(folder, process, asks!)
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
  endGuard(around.folder, ({ holder }) => admits(caller.agent, holder))
  if (caller.process) {
    dropSession(around.folder, caller.process, caller.agent)
    dropCalls(around.folder, caller.process, caller.agent)
  }
  return releaseAll(context, true)
}

async function releaseAll({ asking, caller }: HookContext, nested: boolean): Promise<Verdict> {
  await asking.ask('reserve.release', { nested, process: caller.process }, caller)
  return {}
}
