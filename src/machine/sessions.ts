import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessRef } from '../core/rows.ts'
import { fileRefusal, systemCode } from './errors.ts'
import { writePrivate } from './private_file.ts'
import { ancestors, host, processFact, seat } from './process.ts'

/**
 * Which agent a process is, as its hooks said: one small file per process. Whatever that process
 * starts (a shell, `leasehold mcp`, git) finds it among its ancestors, and is the same agent.
 */
interface SessionFile {
  /** Of this boot and pid namespace; a file that was left by another says nothing. */
  seat: string
  /** Several where one process has many conversations: then nobody can tell whose child asks. */
  agents: string[]
  /** The process has one conversation at a time, so that all it starts is that conversation's. */
  alone: boolean
}

export interface Session {
  agent: string
  /** The agent's own process, which what it holds dies with. */
  process: ProcessRef
}

const FOLDER = 'sessions'
const AGENTS_MAX = 32
/** Looked through when a new file is written: there are few. */
const FILES_MAX = 1000

/** Numbers only: no id that somebody chose becomes part of a file's name. */
const fileOf = (folder: string, { pid, start }: ProcessRef) =>
  join(folder, FOLDER, `${pid}-${start}.json`)

const NOBODY: Omit<SessionFile, 'seat'> = { agents: [], alone: false }

/** What is kept of a process. Refuses (`unavailable`) a file that is there and cannot be read. */
function read(folder: string, process: ProcessRef): Omit<SessionFile, 'seat'> {
  const path = fileOf(folder, process)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return NOBODY
    throw fileRefusal(error, path)
  }
  try {
    const file = JSON.parse(text) as Omit<SessionFile, 'alone'> & { alone?: boolean }
    if (file.seat !== seat || !Array.isArray(file.agents)) return NOBODY
    const agents = file.agents.filter((agent) => typeof agent === 'string')
    return { agents, alone: file.alone ?? false }
  } catch {
    return NOBODY
  }
}

/** The names that are kept of a process. */
export const namesKept = (folder: string, process: ProcessRef) => read(folder, process).agents

/** Whose child this process is, as far as hooks have said: the nearest ancestor that they know. */
export interface Family {
  /** None: of nobody that is known. Several: of one of these. */
  agents: string[]
  alone: boolean
  process: ProcessRef | null
}

export function familyHere(folder: string): Family {
  if (existsSync(join(folder, FOLDER))) {
    for (const { ref } of ancestors()) {
      const { agents, alone } = read(folder, ref)
      if (agents.length > 0) return { agents, alone, process: ref }
    }
  }
  return { ...NOBODY, process: null }
}

/** The agent that this process was started by, if one of its ancestors is known to be one. */
export function sessionHere(folder: string): Session | undefined {
  return sessionOf(familyHere(folder))
}

export function sessionOf({ agents, process }: Family): Session | undefined {
  return process && agents.length === 1 ? { agent: agents[0]!, process } : undefined
}

/**
 * Notes that `process` is `agent`: alone, or, where one process has many conversations, among
 * others. Writes only when that is news.
 */
export function keepSession(
  folder: string,
  process: ProcessRef,
  agent: string,
  how: 'alone' | 'among',
): void {
  const known = namesKept(folder, process)
  if (known.includes(agent) && (how === 'among' || known.length === 1)) return
  const others = how === 'among' ? known.filter((each) => each !== agent) : []
  const agents = [...others.slice(1 - AGENTS_MAX), agent]
  // Only in a state folder that is there: with a token of a server elsewhere there may be none.
  if (!existsSync(folder)) return
  mkdirSync(join(folder, FOLDER), { recursive: true, mode: 0o700 })
  if (known.length === 0) removeStale(folder)
  write(folder, process, { agents, alone: how === 'alone' })
}

/** The conversation is over; the process may go on with others. */
export function dropSession(folder: string, process: ProcessRef, agent: string): void {
  const known = read(folder, process)
  const agents = known.agents.filter((each) => each !== agent)
  if (agents.length === known.agents.length) return
  if (agents.length > 0) write(folder, process, { ...known, agents })
  else rmSync(fileOf(folder, process), { force: true })
}

function write(folder: string, { pid, start }: ProcessRef, known: Omit<SessionFile, 'seat'>): void {
  const file: SessionFile = { seat, ...known }
  writePrivate(join(folder, FOLDER), `${pid}-${start}.json`, `${JSON.stringify(file)}\n`)
}

/** Files of processes that are gone. One that did not end well could not take its own away. */
function removeStale(folder: string): void {
  for (const name of readdirSync(join(folder, FOLDER)).slice(0, FILES_MAX)) {
    const [, pid, start] = /^(\d+)-(\d+)\.json$/.exec(name) ?? []
    if (pid === undefined) continue
    const ref = { host, seat, pid: Number(pid), start: Number(start) }
    if (processFact(ref) === 'dead') rmSync(join(folder, FOLDER, name), { force: true })
  }
}
