import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { attempt } from '../../core/attempt.ts'
import { Refusal } from '../../core/refusal.ts'
import type { GroupRef, ProcessRef } from '../../core/rows.ts'
import { groupFact, MARK, newMark, noteStarted, stopGroup } from '../../machine/group.ts'
import { processRef } from '../../machine/process.ts'
import { pipeOf, Watcher } from './watcher.ts'

/** Waits for a line on a pipe, then becomes the command. End of the pipe: nothing was started. */
const GATE = 'IFS= read -r go <&3 || exit 125; exec 3<&-; exec "$@"'

const GRACE_MS_DEFAULT = 2_000
/** Starting the watcher takes as long as asking the store: at once, the ask on its way first. */
const WATCH_SOON_MS = 1

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface CommandAsk {
  argv: string[]
  /** Its whole environment. */
  env: NodeJS.ProcessEnv
  cwd?: string
  /** `captured`: its three streams are ours to write and read. */
  stdio: 'inherit' | 'captured'
  /** What leaves its group is let go, and not stopped with it. */
  lets_go?: boolean
  /** How long it has between TERM and KILL. */
  grace_ms?: number
  /** One that was started before; else it gets a new one. */
  watcher?: Watcher | undefined
}

type Hear = (said: Buffer, isOut: boolean) => void

/**
 * A command in a process group of its own that has not begun yet. `go` lets it begin, after its
 * group was written down; it never outlives this process.
 */
export interface Command {
  group: GroupRef
  /**
   * Gives one that is captured all that it reads, and hears all that it says. Answers how to wait
   * for the end of that, which is there at once: only a stranger keeps a pipe open for longer.
   */
  talk(input: string, hear: Hear): () => Promise<unknown>
  go(): void
  signal(name: NodeJS.Signals): void
  /** Stops whatever is left of the group. False when it cannot be done. */
  stop(term_ms?: number): Promise<boolean>
  /** The command ended; some of its group may be left. */
  exited: Promise<Exit>
  /** Nothing is left: the watcher may go. */
  done(): void
}

/**
 * Starts `argv` as it is, never through a shell: the fixed script above only passes it on. Refuses
 * when not even that can be started: `invalid` where nobody could start it, else `unavailable`. A
 * program that turns out not to be one exits with 126 or 127 (`whyNotStartable` tells beforehand).
 */
export async function startCommand(ask: CommandAsk): Promise<Command> {
  const { lets_go, grace_ms = GRACE_MS_DEFAULT } = ask
  const mark = newMark()
  const child = spawnGate(ask, mark)
  // The gate may end, or never have begun; `exited` and the lines below tell.
  const failed = new Promise<Error>((tell) => child.once('error', tell))
  const exited = new Promise<Exit>((tell) => {
    child.once('exit', (code, signal) => tell({ code, signal }))
  })
  if (child.pid === undefined) throw notStarted(ask.argv, await failed)
  const gate = pipeOf(child)
  const leader = lookAtLeader(child)
  if (!leader) throw notStarted(ask.argv, new Error('it ended at once'))
  const group: GroupRef = { ...leader, mark, grace_ms, ...(lets_go && { lets_go }) }
  const forget = noteStarted(group)
  let { watcher } = ask
  const watchIt = () => (watcher ??= new Watcher(grace_ms))
  // Needed from the moment of `go` on; before that there is time while the group is written down.
  const soon = setTimeout(watchIt, WATCH_SOON_MS)
  return {
    group,
    talk: (input, hear) => talkTo(child, input, hear),
    go: () => {
      watchIt().watch(group.pid)
      gate.end('go\n')
    },
    signal: (name) => signalGroup(group, name),
    stop: (term_ms) => stopGroup(group, term_ms),
    exited,
    done: () => {
      forget()
      clearTimeout(soon)
      watcher?.done()
    },
  }
}

const DRAIN_MS = 1_000

function talkTo(child: ChildProcess, input: string, hear: Hear): () => Promise<unknown> {
  const ended = [child.stdout!, child.stderr!].map((stream) => {
    stream.on('data', (said: Buffer) => hear(said, stream === child.stdout))
    return once(stream, 'close').catch(() => undefined)
  })
  // A command need not read what it is given.
  child.stdin!.on('error', () => undefined).end(input)
  return () => Promise.race([Promise.all(ended), after(DRAIN_MS, undefined, { ref: false })])
}

/** What cannot be recognised later must not begin: nobody could prove it gone. */
function lookAtLeader(child: ChildProcess): ProcessRef | undefined {
  try {
    return processRef(child.pid!)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

/** Inside a command of ours, another one belongs to both: it has the marks of both. */
function spawnGate({ argv, env, cwd, stdio }: CommandAsk, mark: string): ChildProcess {
  const each = stdio === 'captured' ? 'pipe' : stdio
  try {
    return spawn('/bin/sh', ['-c', GATE, 'leasehold-gate', ...argv], {
      detached: true,
      env: { ...env, [MARK]: env[MARK] ? `${env[MARK]}:${mark}` : mark },
      ...(cwd !== undefined && { cwd }),
      stdio: [each, each, each, 'pipe'],
    })
  } catch (error) {
    // Too long, or with a NUL in it: no process can be given such arguments.
    throw notStarted(argv, error as Error)
  }
}

/** What no process can be given, or a folder that is not there, will not go better later. */
const HOPELESS = new Set(['E2BIG', 'ENOENT', 'ENOTDIR', 'EACCES', 'ERR_INVALID_ARG_VALUE'])

function notStarted(argv: string[], { message, code = '' }: NodeJS.ErrnoException): Refusal {
  // A message may quote the arguments, which can be long and in any script.
  const why = message.split('Received')[0]!.trim()
  const refused = HOPELESS.has(code) ? 'invalid' : 'unavailable'
  return new Refusal(refused, `The command could not be started: ${argv[0]}: ${why}`)
}

/**
 * Why `argv` cannot become a process, as a sentence; undefined when nothing speaks against it. The
 * gate cannot tell: a missing program and one that exits with 127 are the same to it.
 */
export function whyNotStartable(
  argv: string[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): string | undefined {
  const [program = ''] = argv
  if (program === '') return 'there is no command'
  if (program.startsWith('-')) return `${program} is not the name of a program`
  if (!isFolder(cwd)) return `there is no folder ${cwd}`
  const candidates = program.includes('/')
    ? [resolve(cwd, program)]
    : (env['PATH'] ?? '').split(delimiter).map((folder) => resolve(cwd, folder, program))
  if (candidates.some(isProgram)) return undefined
  const found = candidates.some((path) => statSync(path, { throwIfNoEntry: false }) !== undefined)
  return found ? `${program} may not be executed` : `${program} was not found`
}

const isFolder = (path: string) => attempt(() => statSync(path).isDirectory(), false)

const isProgram = (path: string) =>
  attempt(() => {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  }, false)

function signalGroup(group: GroupRef, name: NodeJS.Signals): void {
  try {
    if (groupFact(group) === 'alive') process.kill(-group.pid, name)
  } catch {
    // It ended by itself just now.
  }
}
