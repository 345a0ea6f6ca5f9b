import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** One clock for all processes of a machine, in milliseconds: CLOCK_MONOTONIC. */
export const nowMs = () => Number(process.hrtime.bigint()) / 1e6

export function after(ms: number): Promise<void> {
  // reason: agents work for a while, faults last for a while; that while is what is tried here
  return new Promise((resolve) => void setTimeout(resolve, ms))
}

/** What a client asks for, as far as the checkers want to know it. */
export interface Asked {
  op: string
  /** Under this id it may be asked for again, with one effect. */
  request: string
  agent: string
  /** Locks that are asked for, or the one that is written under. */
  locks?: string[]
  fence?: number
  ttl_ms?: number
  wait_ms?: number
  /** A text that no other ask has, by which its effect is found in the end. */
  mark?: string
  task?: string
  /** Whether the lease names the process that asks: it ends with that process. */
  named?: boolean
  /** Which way it went: sdk, embedded, cli, direct, mcp. */
  door: string
}

/** What came back: fences in the order of the locks, the task, or why not. */
export interface Told {
  outcome: 'ok' | 'refused' | 'unknown'
  code?: string
  fences?: number[]
  /** Of a claim that left it open which. */
  locks?: string[]
  task?: string
  value?: number
}

/** A line of a history: a call begins, or ends. A call without an end was cut off. */
export type Line =
  | ({ t: number; at: 'ask'; n: number } & Asked)
  | ({ t: number; at: 'end'; n: number } & Told)

/** A call, from both of its lines. `who` is one life of one process. */
export interface Call extends Asked, Omit<Told, 'locks'> {
  who: string
  asked: number
  /** Undefined when the caller never saw an end. */
  ended: number | undefined
}

/** What the rig itself did, and saw. */
export type Fact =
  | {
      /** Of a process that ended by itself (`self`): when that was noticed. */
      t: number
      fact: 'killed' | 'stopped' | 'continued'
      who: string
      role: Role
      self?: true
    }
  | { t: number; fact: 'down' | 'up'; what: string }
  | { t: number; fact: 'forced'; lock: string }

export type Role =
  | 'daemon'
  | 'sdk'
  | 'embedded'
  | 'cli'
  | 'mcp'
  | 'wrapper'
  | 'watcher'
  | 'command'
  | 'runner'
  | 'agent command'
  | 'dispatcher'
  | 'database'

/**
 * A file that is only ever added to, a line before and a line after every call: what a process has
 * written is there however it ends.
 */
export class Notes {
  private readonly fd: number
  private calls = 0

  constructor(path: string) {
    this.fd = openSync(path, 'a', 0o600)
  }

  write(line: object): void {
    writeSync(this.fd, `${JSON.stringify(line)}\n`)
  }

  /** Notes the ask, then returns how to note its end. */
  ask(asked: Asked): (told: Told) => void {
    const n = (this.calls += 1)
    this.write({ t: nowMs(), at: 'ask', n, ...asked })
    return (told) => this.write({ t: nowMs(), at: 'end', n, ...told })
  }

  close(): void {
    closeSync(this.fd)
  }
}

/** The last line may be cut off: its writer was killed, or the disk was full. */
export function linesIn<T>(text: string): T[] {
  return text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as T]
    } catch {
      return []
    }
  })
}

/** All calls of one life, in the order in which they were asked. */
export function callsOf(who: string, lines: Line[]): Call[] {
  const open = new Map<number, Call>()
  const calls: Call[] = []
  for (const line of lines) {
    if (line.at === 'ask') {
      const { t, at: _, n, ...asked } = line
      const call: Call = { ...asked, who, asked: t, ended: undefined, outcome: 'unknown' }
      open.set(n, call)
      calls.push(call)
      continue
    }
    const { t, at: _, n, ...told } = line
    const call = open.get(n)
    if (call) Object.assign(call, told, { ended: t })
  }
  return calls
}

/** The histories in a folder, merged: `<who>.calls` of clients. */
export function loadCalls(folder: string): Call[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.calls'))
  const calls = files.flatMap((name) => {
    return callsOf(name.slice(0, -6), linesIn<Line>(readFileSync(join(folder, name), 'utf8')))
  })
  return calls.toSorted((a, b) => a.asked - b.asked)
}

export function loadFacts(folder: string): Fact[] {
  return linesIn<Fact>(readFileSync(join(folder, 'facts'), 'utf8')).toSorted((a, b) => a.t - b.t)
}

/** An effect that somebody was told of, under one request id, however often it was asked for. */
export interface Effect extends Call {
  /** When it was first asked for, and when first acknowledged. */
  asked: number
  ended: number
}

export const requestOf = ({ op, agent, request }: Call) => `${op}\n${agent}\n${request}`

/** What was acknowledged, once per request id, by the earliest ask and the earliest answer. */
export function effectsOf(calls: Call[], ops: readonly string[]): Effect[] {
  const first = new Map<string, number>()
  const told = new Map<string, Effect>()
  for (const call of calls) {
    if (!ops.includes(call.op)) continue
    const key = requestOf(call)
    first.set(key, Math.min(first.get(key) ?? Number.POSITIVE_INFINITY, call.asked))
    if (call.outcome !== 'ok' || call.ended === undefined) continue
    const known = told.get(key)
    if (!known || call.ended < known.ended) told.set(key, call as Effect)
  }
  return Array.from(told, ([key, effect]) => Object.assign({}, effect, { asked: first.get(key)! }))
}

export const GRANTS = ['lock.acquire', 'task.claim'] as const
export const WRITES = ['lock.renew', 'lock.release', 'task.status'] as const

export const isOk = ({ outcome, ended }: Call) => outcome === 'ok' && ended !== undefined

export function groupBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}
