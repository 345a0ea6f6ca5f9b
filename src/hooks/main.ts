import { writeSync } from 'node:fs'
import { AGENTS } from '../agents/all.ts'
import { type AgentKind, KINDS } from '../agents/kinds.ts'
import { attempt } from '../core/attempt.ts'
import { answerFor } from './answers.ts'
import { bypassReason, letPast, saidByPerson } from './bypass.ts'
import { answerGit, gitAgent, gitVerb, guardHistory } from './git.ts'
import { stateFolder } from '../machine/place.ts'
import { agentProcess, askingAgent, callerFor } from './identity.ts'
import { readInput } from './input.ts'
import { handle } from './lifecycle.ts'
import {
  type Answer,
  type HookCall,
  type HookFields,
  fieldsIn,
  SILENT,
  type Verdict,
} from './protocol.ts'
import { readCall } from './read.ts'
import { rememberScenes, type StoreScene, scenesBefore, scenesOf } from './scenes.ts'
import { secretRead } from './secret.ts'
import type { HookSettings } from './settings.ts'
import { standing } from '../reach/server_file.ts'
import { folderIn } from '../stores/place.ts'
import { unreachableText } from './wording.ts'

const isKind = (kind: string): kind is AgentKind => Object.hasOwn(AGENTS, kind)

/**
 * Since the start: however long git, the daemon or the disk take, by then there is an answer. Told
 * by `process.uptime`: to load what `performance` is takes a millisecond.
 */
const PATIENCE_MS = 4_500
const CLOSE_MS = 300
const INPUT_MS = 2_000

/**
 * `leasehold hook AGENT EVENT`. Exits with what the agent's protocol says, never with an error of
 * our own: to an agent, exit 2 means "do not".
 */
async function hook(argv: string[], env: NodeJS.ProcessEnv): Promise<Answer> {
  const [kind = '', event = '', ...rest] = argv
  if (kind === 'git') return hookGit(event, env)
  if (!isKind(kind)) return wrong(`There is no agent ${kind}: say ${KINDS.join(', ')} or git`)
  const said = rest[0]?.startsWith('{') ? rest[0] : await readInput(INPUT_MS)
  const input = said === undefined ? undefined : parse(said)
  const who = otherEditor(kind, input) ?? kind
  const asker = AGENTS[who]
  const call = readCall(asker, event, input ?? {}, env)
  // Agents learn new events; what we do not know is none of our business.
  if (!call) return { ...SILENT, err: `leasehold hook ${kind}: nothing to do at ${event}\n` }
  const scenes = await scenesOf(env, call)
  const own = agentProcess()
  if (call.event === 'before') rememberScenes(env, own, call.cwd, scenes)
  else scenes.push(...scenesBefore(env, own, scenes))
  const can = call.event === 'before' ? (mayWrite(call) || !input ? 'refuse' : 'tell') : 'report'
  const verdict = await judge(scenes, env, can, async ({ effects, ...scene }) => {
    if (!input)
      throw new Error(said === undefined ? 'its input is too long' : 'its input is not JSON')
    const { session, subagent } = call
    const asks = { kind: who, session, subagent, own, isAlone: asker.isAlone }
    const caller = callerFor(askingAgent(scene.around.folder, env, asks), own, env)
    const context = { env, caller, ...scene }
    const secret = call.event === 'before' ? secretRead(call, input) : undefined
    if (secret) return letPast(context, secret.text, [secret.path])
    return handle(context, call, effects, asker.isAlone)
  })
  return answerFor(AGENTS[kind], call, verdict)
}

/** What only looks goes on, also where nobody can be asked. */
const mayWrite = ({ files, command, unread, unknown }: HookCall) =>
  files.length > 0 || [command, unread, unknown].some((each) => each !== undefined)

/** What several stores said: a no of one counts; who the agent is, the first one says. */
function together(verdicts: readonly Verdict[]): Verdict {
  const joined = (part: 'context' | 'notice') => {
    const text = verdicts.map((each) => each[part]).filter(Boolean)
    return text.length > 0 ? { [part]: text.join('\n') } : {}
  }
  const { deny } = verdicts.at(-1) ?? {}
  return {
    ...verdicts[0],
    ...joined('context'),
    ...joined('notice'),
    ...(deny !== undefined && { deny }),
  }
}

/**
 * Cursor and VS Code run the hooks of Claude Code too, beside their own: each is one agent all the
 * same, and must not be refused what it has reserved itself. Of these three only Claude Code says
 * which permissions it has, and only VS Code when it asked.
 */
function otherEditor(kind: AgentKind, input: HookFields = {}): AgentKind | undefined {
  if (kind !== 'claude') return undefined
  if (input['cursor_version'] !== undefined) return 'cursor'
  const isVsCode = input['timestamp'] !== undefined && input['permission_mode'] === undefined
  return isVsCode ? 'copilot' : undefined
}

async function hookGit(event: string, given: NodeJS.ProcessEnv): Promise<Answer> {
  const verb = gitVerb(event)
  if (verb === undefined) return wrong(`There is no hook of git named ${event} here`)
  const cwd = process.cwd()
  const env = saidByPerson(stateFolder(given, cwd), given)
  const scenes = await scenesOf(env, { cwd, files: [] })
  if (scenes.every(({ settings }) => settings.mode === 'off')) return SILENT
  // git waits for nobody to read what it pipes, and a commit pipes nothing.
  const input = verb === 'push' ? ((await readInput(INPUT_MS)) ?? '') : ''
  const verdict = await judge(scenes, env, 'refuse', async (scene) => {
    const { agent, process } = gitAgent(scene.around.folder, env)
    return guardHistory({ env, caller: callerFor(agent, process, env), ...scene }, verb, input)
  })
  return answerGit(verdict)
}

/** Asks each store that is concerned, up to the first that refuses. */
async function judge(
  scenes: readonly StoreScene[],
  env: NodeJS.ProcessEnv,
  can: Can,
  ask: (scene: Omit<StoreScene, 'lost'>) => Promise<Verdict>,
): Promise<Verdict> {
  const verdicts: Verdict[] = []
  for (const { lost, ...scene } of scenes) {
    if (scene.settings.mode === 'off') continue
    const work = async () => {
      if (lost !== undefined) throw new Error(lost)
      return ask(scene)
    }
    verdicts.push(await decide(work, scene.settings, env, can))
    await within(scene.asking.close(), CLOSE_MS).catch(() => undefined)
    if (verdicts.at(-1)?.deny !== undefined) break
  }
  return together(verdicts)
}

/** A call that may write can be refused; of one that looks, or is over, something can be said. */
type Can = 'refuse' | 'tell' | 'report'

/** Works until there is a verdict or the time is up; what cannot be asked is decided by config. */
async function decide(
  work: () => Promise<Verdict>,
  { unreachable, problems }: HookSettings,
  env: NodeJS.ProcessEnv,
  can: Can,
): Promise<Verdict> {
  let verdict: Verdict
  try {
    verdict = await within(work(), PATIENCE_MS - process.uptime() * 1000)
  } catch (error) {
    const text = unreachableText(error)
    if (unreachable === 'closed' && can === 'refuse' && !bypassReason(env)) {
      verdict = { deny: `${text}. ${CLOSED}` }
    } else verdict = { notice: can === 'report' ? text : `${text}. ${OPEN}` }
  }
  const notices = [...problems.map((each) => `Leasehold: ${each}`), verdict.notice]
  // Afterwards nothing can be refused; it can be said.
  if (can === 'report' && verdict.deny !== undefined) notices.push(verdict.deny)
  const notice = notices.filter(Boolean).join('\n')
  return { ...verdict, ...(notice !== '' && { notice }) }
}

const OPEN = 'It goes on unguarded. See: leasehold doctor'
const CLOSED =
  'So it is refused (hooks.unreachable is closed). Next: Tell your user: leasehold doctor says ' +
  'more, leasehold init sets this checkout up anew, leasehold init --undo takes its hooks out'

function within<T>(work: Promise<T>, patience_ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('no answer in time')), patience_ms)
    work.then(resolve, reject).finally(() => clearTimeout(late))
  })
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? fieldsIn(value) : undefined
  } catch {
    return undefined
  }
}

/** Not exit 2, which would block everything over a slip in a settings file. */
function wrong(what: string): Answer {
  return { ...SILENT, err: `leasehold hook: ${what}\n  next: leasehold hook --help\n`, code: 1 }
}

/** All of it, although a pipe may be full: the reader is there, and waits for us. */
function say(fd: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
    }
  }
}

/** Runs the hook and ends the process: a pipe that nobody closed must not keep it. */
export async function main(argv: string[]): Promise<never> {
  const { env } = process
  // Where nobody can say which store is meant, the hook says so itself.
  const told = attempt(() => standing(env, folderIn(env, process.cwd())), env)
  const { out, err, code } = await hook(argv, told)
  say(1, out)
  say(2, err)
  process.exit(code)
}
