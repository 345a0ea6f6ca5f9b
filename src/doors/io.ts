import { AsyncLocalStorage } from 'node:async_hooks'

interface Out {
  isTTY?: boolean
  columns?: number
  write(text: string): unknown
}

/**
 * What a command has of the program that it runs in. A command that a person or an agent gives has
 * a process of its own, and this is `process`; a program that runs several gives each another.
 */
export interface Io {
  env: NodeJS.ProcessEnv
  cwd(): string
  stdin: { isTTY?: boolean; fd?: number }
  stdout: Out
  stderr: Out
  exitCode?: number | string | null | undefined
  once(interrupt: 'SIGINT', act: () => void): unknown
  off(interrupt: 'SIGINT', act: () => void): unknown
}

const given = new AsyncLocalStorage<Io>()

/** Of the command that runs now. */
export const io = (): Io => given.getStore() ?? process

export const withIo = <T>(own: Io, command: () => Promise<T>): Promise<T> => given.run(own, command)

/** A process that is asked for `stdin` opens a stream; a pipe then waits for no reader. */
export const inputFile = (): number => given.getStore()?.stdin.fd ?? 0
