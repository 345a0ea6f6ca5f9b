import { plant, type Promised } from '../core/planted.ts'

declare const LEASEHOLD_TEST_BUILD: boolean | undefined

/* What only a test build does, told by the environment: the bundler removes it elsewhere. */

/** Breaks a promise, to show that its test notices. Every bundle has a switch of its own. */
export function plantAsTold(): void {
  if (typeof LEASEHOLD_TEST_BUILD === 'undefined' || !LEASEHOLD_TEST_BUILD) return
  const bug = process.env['LEASEHOLD_PLANT']
  if (bug) plant(bug as Promised)
}

/**
 * A place at which a test may stop this process, to look at it or to kill it there: it stops itself
 * (SIGSTOP) at the step that `LEASEHOLD_STOP_AT` names.
 */
export function step(name: string): void {
  if (typeof LEASEHOLD_TEST_BUILD === 'undefined' || !LEASEHOLD_TEST_BUILD) return
  if (process.env['LEASEHOLD_STOP_AT'] === name) process.kill(process.pid, 'SIGSTOP')
}
