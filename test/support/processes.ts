import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, vi } from 'vitest'
import { memoryFolder } from './memory_folder.ts'

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

export const BIN = at('bin/leasehold')
export const CLI = at('dist/cli.cjs')
export const TEST_CLI = at('dist/test/cli.cjs')
export const PARTICIPANT = at('dist/test/participant.mjs')

/** `FAULTS=long` multiplies the rounds of tests that look for rare interleavings. */
export const ROUNDS = process.env['FAULTS'] === 'long' ? 10 : 1

/**
 * Long enough for a busy machine; a test that waits this long has failed. Less than a test may
 * take, or nobody would read what it waited for.
 */
const PATIENCE_MS = 50_000

// oxlint-disable-next-line typescript/no-explicit-any -- what a program printed has any shape
type Json = any

/** A process that has ended, and what it said. */
export class Ended {
  constructor(
    readonly code: number | null,
    readonly signal: NodeJS.Signals | null,
    readonly out: string,
    readonly err: string,
  ) {}

  /** Its standard output, read as JSON. */
  get json(): Json {
    return JSON.parse(this.out)
  }

  /** What stands under `error` in the JSON on its standard error. */
  get error(): Json {
    return JSON.parse(this.err).error
  }
}

export interface Options {
  env?: Record<string, string | undefined>
  cwd?: string
  input?: string | Buffer
  /** Which program: the shipped command line unless told otherwise. */
  program?: string[]
  uid?: number
  gid?: number
}

/** How often is looked at first, and at most after a while: a look costs whoever is looked at. */
const PAUSE_MS = { first: 15, most: 100, factor: 1.2 }

/** Waits until `look` gives something true, and returns it. Says `what` it waited for in vain. */
export function until<T>(
  what: string,
  look: () => T | Promise<T>,
  timeout = PATIENCE_MS,
): Promise<Exclude<T, undefined | null | false | '' | 0>> {
  const inVain = new Error(`waited in vain: ${what}`)
  let [pause_ms, due_ms] = [PAUSE_MS.first, 0]
  let trouble: unknown = inVain
  const attempt = async () => {
    if (performance.now() < due_ms) throw trouble
    try {
      const found = await look()
      if (found) return found as Exclude<T, undefined | null | false | '' | 0>
      trouble = inVain
    } catch (error) {
      trouble = error
    }
    due_ms = performance.now() + pause_ms
    pause_ms = Math.min(pause_ms * PAUSE_MS.factor, PAUSE_MS.most)
    throw trouble
  }
  return vi.waitFor(attempt, { interval: PAUSE_MS.first, timeout })
}

/** A process that runs: what it says can be waited for, and it can be signalled. */
export class Running {
  readonly pid: number
  readonly ended: Promise<Ended>
  out = ''
  err = ''

  constructor(
    readonly child: ChildProcess,
    input: string | Buffer | undefined,
  ) {
    this.pid = child.pid!
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    // A process that was killed does not read what it is sent.
    child.stdin?.on('error', () => undefined)
    if (input !== undefined) child.stdin?.end(input)
    this.ended = once(child, 'close').then(([code, signal]) => {
      return new Ended(code as number | null, signal as NodeJS.Signals | null, this.out, this.err)
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  /** Resolves with the match when the process has said something like this. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return until(`${pattern} in <${this.out}> <${this.err}>`, () => {
      return pattern.exec(this.out) ?? pattern.exec(this.err)
    })
  }

  /** Stopped and seen to be stopped: nothing of it runs any more until SIGCONT. */
  async stop(): Promise<void> {
    this.kill('SIGSTOP')
    await until(`${this.pid} stops`, () => stateOf(this.pid) === 'T')
  }
}

/** The state letter that the kernel gives a process; undefined when there is none. */
export function stateOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0]
  } catch {
    return undefined
  }
}

export function isAlive(pid: number): boolean {
  const state = stateOf(pid)
  return state !== undefined && state !== 'Z' && state !== 'X'
}

/**
 * A place of its own for one test: state folder, home, and processes that all carry its mark.
 * When the test has ended nothing of it may run any more: what does is killed, and fails the test.
 */
export class Sandbox {
  /** A kill loses nothing that was written, on a disk or not; a power cut has a disk of its own. */
  readonly folder = mkdtempSync(join(memoryFolder('programs'), 'leasehold-e2e-'))
  readonly state = join(this.folder, 'state')
  readonly home = join(this.folder, 'home')
  private readonly mark = randomUUID()
  env: Record<string, string | undefined>

  constructor() {
    mkdirSync(this.home)
    const { PATH } = process.env
    this.env = {
      PATH,
      HOME: this.home,
      NO_COLOR: '1',
      LEASEHOLD_DIR: this.state,
      LEASEHOLD_TEST: this.mark,
      // Where a test is not about meaning, no model is loaded.
      LEASEHOLD_EMBEDDINGS: 'off',
      // Where a test is not about approval, its configuration counts as it is.
      LEASEHOLD_TRUST_CONFIG: 'yes',
    }
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  /** Starts the command line, or any program that takes these arguments. */
  start(args: string[], options: Options = {}): Running {
    const [program, ...first] = options.program ?? [process.execPath, BIN]
    const spawned: SpawnOptions = {
      cwd: options.cwd ?? this.folder,
      env: { ...this.env, ...options.env },
      stdio: 'pipe',
      ...(options.uid !== undefined && { uid: options.uid, gid: options.gid ?? options.uid }),
    }
    return new Running(spawn(program!, [...first, ...args], spawned), options.input)
  }

  /** Runs the command line to its end. */
  cli(args: string[], options: Options = {}): Promise<Ended> {
    return this.start(args, { input: '', ...options }).ended
  }

  /** Runs it with `--json`, expects success, and returns the result. */
  async ok(args: string[], options: Options = {}, code = 0): Promise<Json> {
    const ended = await this.cli(['--json', ...args], options)
    expect(ended, args.join(' ')).toMatchObject({ code, err: '' })
    return ended.json
  }

  /** Claims where nothing is ready: an answer, with an exit code of its own. */
  async nothingReady(...args: string[]): Promise<void> {
    const nothing = { task: null, lease: null, run: null }
    expect(await this.ok(['task', 'claim', ...args], {}, 6)).toEqual(nothing)
  }

  /** Runs it with `--json`, expects this refusal and its exit code, and returns it. */
  async refused(args: string[], code: string, exit: number, options: Options = {}): Promise<Json> {
    const ended = await this.cli(['--json', ...args], options)
    expect(ended, args.join(' ')).toMatchObject({ code: exit, out: '' })
    expect(ended.error).toMatchObject({ code })
    for (const part of ['message', 'next']) expect(ended.error[part], part).not.toBe('')
    return ended.error
  }

  /** Pids of all that still run with our mark in their environment. */
  left(): number[] {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid && isAlive(pid) && this.isOurs(pid))
  }

  private isOurs(pid: number): boolean {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(this.mark)
    } catch {
      return false
    }
  }

  async close(): Promise<void> {
    try {
      await until('all processes of the test end', () => this.left().length === 0, 5_000)
    } catch {
      const leaked = this.left().map((pid) => `${pid} ${commandOf(pid)}`)
      for (const pid of this.left()) tryKill(pid)
      throw new Error(`leaked processes:\n${leaked.join('\n')}`)
    } finally {
      rmSync(this.folder, { recursive: true, force: true })
    }
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return '(gone)'
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself just now.
  }
}

/** A sandbox for the test that runs now, closed when that ends. */
export function sandbox(): Sandbox {
  const made = new Sandbox()
  onTestFinished(() => made.close())
  return made
}

/** Prints why a test cannot show what it is there for, so that nobody takes it for passed. */
export function because(reason: string): string {
  process.stderr.write(`skipped: ${reason}\n`)
  return reason
}

/** What a participant printed, a JSON object per line, behind its first word. */
export async function linesOf<Said>(running: Running): Promise<Said[]> {
  const { code, out, err } = await running.ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as Said)
}
