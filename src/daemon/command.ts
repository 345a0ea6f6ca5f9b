import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import { Refusal } from '../core/refusal.ts'
import type { ProcessRef } from '../core/rows.ts'
import { groupFact, processRef, stopGroup } from '../stores/process.ts'

/** Waits for a line on a pipe, then becomes the command. End of the pipe: nothing was started. */
const GATE = 'IFS= read -r go <&3 || exit 125; exec 3<&-; exec "$@"'

/**
 * Outlives us by a moment: when the pipe ends without a word we died, and the command's whole group
 * goes too. TERM first, then KILL; CONT so that a stopped process hears the first.
 */
const WATCH = `IFS= read -r done <&3 && exit 0
kill -s TERM -- "-$1" && kill -s CONT -- "-$1"
n=0
while kill -s 0 -- "-$1" && [ "$n" -lt 20 ]; do sleep 0.1; n=$((n + 1)); done
kill -s KILL -- "-$1"`

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/**
 * A command in a process group of its own that has not begun yet. `go` lets it begin, after its
 * group was written down; it never outlives this process.
 */
export interface Command {
  group: ProcessRef
  go(): void
  signal(name: NodeJS.Signals): void
  /** Stops whatever is left of the group. False when it cannot be done. */
  stop(term_ms?: number): Promise<boolean>
  /** The command ended; some of its group may be left. */
  exited: Promise<Exit>
  /** Nothing is left: the watcher may go. */
  done(): void
}

/** Starts `argv` as it is, never through a shell: the fixed script above only passes it on. */
export function startCommand(argv: string[], env: NodeJS.ProcessEnv): Command {
  const child = spawn('/bin/sh', ['-c', GATE, 'leasehold-gate', ...argv], {
    detached: true,
    env,
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
  })
  const group = child.pid === undefined ? undefined : processRef(child.pid)
  if (!group) throw new Refusal('unavailable', `The command could not be started: ${argv[0]}`)
  const watcher = watch(group.pid)
  const gate = pipeOf(child)
  return {
    group,
    go: () => void gate.end('go\n'),
    signal: (name) => signalGroup(group, name),
    stop: (term_ms) => stopGroup(group, term_ms),
    exited: new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
    }),
    done: () => void pipeOf(watcher).end('done\n'),
  }
}

function watch(group: number): ChildProcess {
  const watcher = spawn('/bin/sh', ['-c', WATCH, 'leasehold-watch', String(group)], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  watcher.unref()
  return watcher
}

function pipeOf(child: ChildProcess): Writable {
  const pipe = child.stdio[3] as Writable
  // The other end may be gone already; that is told by `exited`, not by a write error.
  pipe.on('error', () => undefined)
  return pipe
}

function signalGroup(group: ProcessRef, name: NodeJS.Signals): void {
  if (groupFact(group) === 'alive') process.kill(-group.pid, name)
}
