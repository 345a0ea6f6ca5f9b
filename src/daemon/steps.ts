declare const LEASEHOLD_TEST_BUILD: boolean | undefined

/**
 * A place at which a test may stop this process, to look at it or to kill it there: it stops itself
 * (SIGSTOP) at the step that `LEASEHOLD_STOP_AT` names. Only in test builds; elsewhere the bundler
 * removes every use of it.
 */
export function step(name: string): void {
  if (typeof LEASEHOLD_TEST_BUILD === 'undefined' || !LEASEHOLD_TEST_BUILD) return
  if (process.env['LEASEHOLD_STOP_AT'] === name) process.kill(process.pid, 'SIGSTOP')
}
