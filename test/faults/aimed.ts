import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import type { TestContext } from 'vitest'
import {
  BIN,
  because,
  type Options,
  type Running,
  type Sandbox,
  until,
} from '../support/processes.ts'

/**
 * Where a program is stopped: behind the `nth` system call of this name on one of these paths. What
 * it saw there is what it goes on with, whatever others do meanwhile.
 */
export interface Aim {
  paths: string[]
  call: 'access' | 'openat' | 'rename' | 'statx' | 'read' | 'unlink' | 'link'
  nth?: number
}

/** A program that runs up to one place, and on when it is told to. */
export interface Aimed {
  running: Running
  /** Resolves when it has stopped there; false when it has ended without being there. */
  isThere(): Promise<boolean>
  /** Lets it go on, untraced. */
  goOn(): Promise<void>
}

/** Starts a command of the sandbox so that it stops at `aim`: a race that is sure to be lost. */
export function startAimed(place: Sandbox, args: string[], aim: Aim, options: Options = {}): Aimed {
  const { program = [process.execPath, BIN] } = options
  const { paths, call, nth = 1 } = aim
  const log = place.path(`aimed.${(aimedCount += 1)}`)
  // The tracer is a process beside it, so that signals reach the program itself.
  const tracer = [STRACE, '-D', '-f', '-qq', '-o', log, ...paths.flatMap((path) => ['-P', path])]
  const rule = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=STOP:when=${nth}`]
  const running = place.start(args, {
    input: '',
    ...options,
    program: [...tracer, ...rule, ...program],
  })
  let hasEnded = false
  void running.ended.then(() => (hasEnded = true))
  const hasStopped = () => existsSync(log) && STOPPED(running.pid).test(readFileSync(log, 'utf8'))
  return {
    running,
    isThere: async () => {
      await until(`${call} of ${paths.join()}`, () => hasEnded || hasStopped())
      return !hasEnded
    },
    goOn: async () => {
      // Each thread is counted for itself, so another one could be stopped there. Told to end, the
      // tracer would wait for what is stopped.
      const tracing = tracerOf(running.pid)
      if (tracing) process.kill(tracing, 'SIGKILL')
      await until('it is traced no more', () => tracerOf(running.pid) === 0)
      running.kill('SIGCONT')
    },
  }
}

let aimedCount = 0

// A program of the system. Named here: in place, knip takes it for one of a package.
const [STRACE] = ['strace'] as const

const STOPPED = (pid: number) => new RegExp(`^${pid} +--- stopped by SIGSTOP`, 'm')

function tracerOf(pid: number): number {
  return Number(/^TracerPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** Skips the test where no program can be aimed at. */
export function needsAim(context: TestContext): void {
  const tried = spawnSync(STRACE, ['-qq', '-e', 'inject=access:signal=CONT', 'true'])
  // reason: to stop a program at one system call takes strace, and the right to trace
  if (tried.status !== 0) context.skip(because('no strace here, or no right to trace'))
}
