import { type ChildProcess, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'
import type { ProcessRef } from '../../core/rows.ts'
import { processRef } from '../../machine/process.ts'

/**
 * Outlives us by a moment. It is told of a command's group when there is one; when the pipe ends
 * without another word we died, and the whole group goes too. TERM first, then KILL; CONT so that a
 * stopped process hears the first. It ends when nobody is left, so that its end proves that.
 */
const WATCH = `IFS= read -r group <&3 || exit 0
IFS= read -r done <&3 && exit 0
left() { kill -s 0 -- "-$group" && [ "$n" -lt "$1" ] && sleep 0.1 && n=$((n + 1)); }
kill -s TERM -- "-$group" && kill -s CONT -- "-$group"
n=0
while left "$1"; do :; done
kill -s KILL -- "-$group"
n=0
while left 50; do :; done`

/** A process that stops a command when the process that started both has died. */
export class Watcher {
  private readonly child: ChildProcess
  private readonly pipe: Writable | undefined

  constructor(grace_ms: number) {
    const tenths = String(Math.ceil(grace_ms / 100))
    this.child = spawn('/bin/sh', ['-c', WATCH, 'leasehold-watch', tenths], {
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    })
    // Without a watcher the command ends with its lease all the same, only later.
    this.child.on('error', () => undefined)
    if (this.child.pid !== undefined) this.pipe = pipeOf(this.child)
    this.child.unref()
  }

  /** The watcher as a process that a lease can name; undefined when it could not be started. */
  get process(): ProcessRef | undefined {
    return this.child.pid === undefined ? undefined : processRef(this.child.pid)
  }

  watch(group: number): void {
    this.pipe?.write(`${group}\n`)
  }

  /** Nothing is left to stop. */
  done(): void {
    this.pipe?.end('done\n')
  }
}

/** What a script of ours reads as descriptor 3. */
export function pipeOf(child: ChildProcess): Writable {
  const pipe = child.stdio[3] as Writable
  // The other end may be gone already; that is told by its exit, not by a write error.
  pipe.on('error', () => undefined)
  return pipe
}
