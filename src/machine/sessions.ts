import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../core/attempt.ts'
import { admits } from '../core/caller.ts'
import type { ProcessRef } from '../core/rows.ts'
import { sha256 } from './digest.ts'
import { fileRefusal, systemCode } from './errors.ts'
import { writePrivate } from './private_file.ts'
import { controlGroup } from './proc.ts'
import { host, processFact, seat } from './process.ts'

/**
 * Which agent a process is, as its hooks said: one small file per process. Whatever that process
 * starts (a shell, `leasehold mcp`, git) finds it among its ancestors, and is the same agent.
 */
export interface SessionFile {
  /** Of this boot and pid namespace; a file that was left by another says nothing. */
  seat: string
  /** Several where one process has many conversations: then nobody can tell whose child asks. */
  agents: string[]
  /** The process has one conversation at a time, so that all it starts is that conversation's. */
  alone: boolean
  /** The control group of the process: see `src/machine/detached.ts`. */
  group?: string | undefined
  /** Where the client writes down what happens in a conversation, by agent. */
  transcripts?: Record<string, string>
}

/**
 * A tool of ours, or a command of a shell, that a subagent has called and that is under way: one
 * small file each, because subagents work at the same time.
 */
interface SubagentCall {
  /** As the client calls it, in hooks and in `_meta`. */
  id: string
  agent: string
  /** The command. */
  text?: string | undefined
}

const FOLDER = 'sessions'
const AGENTS_MAX = 32
/** Looked through when a new file is written: there are few. */
const FILES_MAX = 1000

export const sessionsFolder = (folder: string) => join(folder, FOLDER)

/** Most folders have none, and then nobody has to look. */
export const hasSessions = (folder: string) => existsSync(join(folder, FOLDER))

/** Numbers only: no id that somebody chose becomes part of a file's name. */
const fileOf = (folder: string, { pid, start }: ProcessRef) =>
  join(folder, FOLDER, `${pid}-${start}.json`)

const NOBODY: Omit<SessionFile, 'seat'> = { agents: [], alone: false }

/** What is kept of a process. Refuses (`unavailable`) a file that is there and cannot be read. */
export function readSession(folder: string, process: ProcessRef): Omit<SessionFile, 'seat'> {
  const file = readFile(fileOf(folder, process))
  return file?.seat === seat ? file : NOBODY
}

function readFile(path: string): SessionFile | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw fileRefusal(error, path)
  }
  try {
    const file = JSON.parse(text) as SessionFile
    if (!Array.isArray(file.agents)) return undefined
    const agents = file.agents.filter((agent) => typeof agent === 'string')
    return { ...file, agents, alone: file.alone ?? false }
  } catch {
    return undefined
  }
}

/** The names that are kept of a process. */
export const namesKept = (folder: string, process: ProcessRef) =>
  readSession(folder, process).agents

/**
 * Notes that `process` is `agent`: alone, or, where one process has many conversations, among
 * others. Writes only when that is news.
 */
export function keepSession(
  folder: string,
  process: ProcessRef,
  agent: string,
  how: 'alone' | 'among',
  transcript?: string,
): void {
  const { agents: known, transcripts = {} } = readSession(folder, process)
  const isNew = transcript !== undefined && transcripts[agent] !== transcript
  if (known.includes(agent) && (how === 'among' || known.length === 1) && !isNew) return
  const others = how === 'among' ? known.filter((each) => each !== agent) : []
  const agents = [...others.slice(1 - AGENTS_MAX), agent]
  // Only in a state folder that is there: with a token of a server elsewhere there may be none.
  if (!existsSync(folder)) return
  mkdirSync(join(folder, FOLDER), { recursive: true, mode: 0o700 })
  if (known.length === 0) removeStale(folder)
  const paths = { ...transcripts, ...(transcript !== undefined && { [agent]: transcript }) }
  const kept = Object.entries(paths).filter(([each]) => agents.includes(each))
  write(folder, process, {
    agents,
    alone: how === 'alone',
    group: controlGroup(process.pid),
    ...(kept.length > 0 && { transcripts: Object.fromEntries(kept) }),
  })
}

/** The conversation is over; the process may go on with others. */
export function dropSession(folder: string, process: ProcessRef, agent: string): void {
  const known = readSession(folder, process)
  const agents = known.agents.filter((each) => each !== agent)
  if (agents.length === known.agents.length) return
  if (agents.length > 0) write(folder, process, { ...known, agents })
  else rmSync(fileOf(folder, process), { force: true })
}

const TEXT_MAX = 2_000

const callName = ({ pid, start }: ProcessRef, id: string) =>
  `${pid}-${start}.${sha256(id).slice(0, 16)}.json`

/** Notes that a subagent of `process` has called something. */
export function keepCall(folder: string, process: ProcessRef, call: SubagentCall): void {
  // Where no session is kept, nobody would look for it.
  if (namesKept(folder, process).length === 0) return
  const noted = { ...call, text: call.text?.slice(0, TEXT_MAX) }
  writePrivate(join(folder, FOLDER), callName(process, call.id), `${JSON.stringify(noted)}\n`)
}

/** The call is over. */
export function dropCall(folder: string, process: ProcessRef, id: string): void {
  rmSync(join(folder, FOLDER, callName(process, id)), { force: true })
}

/** Those of an agent whose end nobody told are over with the agent. */
export function dropCalls(folder: string, process: ProcessRef, agent: string): void {
  for (const { call, path } of callsOf(folder, process)) {
    if (admits(agent, call.agent)) rmSync(path, { force: true })
  }
}

export function callsOf(folder: string, { pid, start }: ProcessRef) {
  return fileNames(folder)
    .filter((file) => file.isCall && file.pid === pid && file.start === start)
    .flatMap(({ name }) => {
      const path = join(folder, FOLDER, name)
      const call = attempt(() => JSON.parse(readFileSync(path, 'utf8')) as SubagentCall, undefined)
      return call ? [{ call, path }] : []
    })
}

function write(folder: string, { pid, start }: ProcessRef, known: Omit<SessionFile, 'seat'>): void {
  const file: SessionFile = { seat, ...known }
  writePrivate(join(folder, FOLDER), `${pid}-${start}.json`, `${JSON.stringify(file)}\n`)
}

/** Files of processes that are gone. One that did not end well could not take its own away. */
function removeStale(folder: string): void {
  for (const { name, pid, start } of fileNames(folder)) {
    if (processFact({ host, seat, pid, start }) !== 'dead') continue
    rmSync(join(folder, FOLDER, name), { force: true })
  }
}

function fileNames(folder: string) {
  const names = hasSessions(folder) ? readdirSync(join(folder, FOLDER)) : []
  return names.slice(0, FILES_MAX).flatMap((name) => {
    const [, pid, start, call] = /^(\d+)-(\d+)(\.[\da-f]{16})?\.json$/.exec(name) ?? []
    if (pid === undefined) return []
    return [{ name, pid: Number(pid), start: Number(start), isCall: call !== undefined }]
  })
}

/** Every process that is noted, whichever namespace it is in. */
export const sessionFiles = (folder: string) =>
  fileNames(folder).flatMap(({ name, pid, start, isCall }) => {
    const file = isCall ? undefined : readFile(join(folder, FOLDER, name))
    return file ? [{ file, ref: { host, seat: file.seat, pid, start } }] : []
  })
