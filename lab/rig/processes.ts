import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { after, nowMs, type Role } from './history.ts'

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

export const BIN = at('bin/leasehold')
export const TEST_CLI = at('dist/test/cli.cjs')
export const SDK = at('dist/sdk/index.js')
export const AGENT = at('dist/test/rig_agent.mjs')

// Of util-linux; named here: in place, knip takes it for a program of a package.
const [UNSHARE] = ['unshare'] as const

/** Before a program that shall not reach any daemon: in a network of its own there is none. */
export const ALONE: readonly string[] =
  spawnSync(UNSHARE, ['--net', 'true']).status === 0 ? [UNSHARE, '--net'] : []

export type Env = Record<string, string | undefined>

/** A program that the rig started, and what it said. */
export class Proc {
  readonly child: ChildProcess
  readonly since = nowMs()
  out = ''
  err = ''
  /** Resolves when it has ended, with code and signal. */
  readonly ended: Promise<{ code: number | null; by: NodeJS.Signals | null }>
  isOver = false

  /** `before` stands before the program, and becomes it. */
  constructor(
    readonly who: string,
    readonly role: Role,
    argv: string[],
    env: Env,
    cwd: string,
    before: readonly string[] = [],
  ) {
    const [program, ...args] = [...before, process.execPath, ...argv]
    this.child = spawn(program!, args, { env, cwd, stdio: 'pipe' })
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    // What is killed in the middle of a word breaks its pipes.
    for (const pipe of this.child.stdio) pipe?.on('error', () => undefined)
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, by: NodeJS.Signals | null) => {
        this.isOver = true
        resolve({ code, by })
      })
    })
  }

  get pid(): number {
    return this.child.pid ?? 0
  }
}

/** Signals a process that may have ended just now. False when it has. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return pid > 0 && process.kill(pid, name)
  } catch {
    return false
  }
}

/** The state letter of the kernel, the parent and the start time; undefined when there is none. */
export function statOf(pid: number): { state: string; parent: number; start: string } | undefined {
  const fields = procText(pid, 'stat').split(') ').at(-1)!.split(' ')
  const [state, parent] = fields
  if (!state || parent === undefined) return undefined
  return { state, parent: Number(parent), start: fields[19] ?? '' }
}

export function procText(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

export const isAlive = (pid: number) => !['Z', 'X', undefined].includes(statOf(pid)?.state)

export const pidsNow = () =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0)

/** Waits until `look` is true; false when it did not become so in time. */
export async function until(
  look: () => boolean | Promise<boolean>,
  timeout_ms: number,
  every_ms = 20,
): Promise<boolean> {
  for (const end = nowMs() + timeout_ms; nowMs() < end;) {
    if (await look()) return true
    await after(every_ms)
  }
  return look()
}

export interface Reply {
  status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- a server answers anything
  json: any
}

/** One request on a connection of its own. Rejects when nobody answers in time. */
export function post(port: number, path: string, token = '', body?: object): Promise<Reply> {
  const text = body && JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method: body ? 'POST' : 'GET',
        agent: false,
        timeout: 10_000,
        headers: {
          ...(token !== '' && { authorization: `Bearer ${token}` }),
          ...(text && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text),
          }),
        },
      },
      (response) => {
        let said = ''
        response.setEncoding('utf8').on('data', (part: string) => (said += part))
        response.on('error', reject)
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, json: jsonOf(said) })
        })
      },
    )
    asked.on('timeout', () => asked.destroy(new Error('nobody answered in 10 s')))
    asked.on('error', reject)
    asked.end(text)
  })
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
