import { Refusal } from '../core/refusal.ts'

/** A bug of ours, as doors report it: what went wrong is for the log, not for the caller. */
export function broken(error: unknown): Refusal {
  process.stderr.write(`leasehold: ${error instanceof Error ? error.stack : String(error)}\n`)
  return new Refusal('internal', 'Something broke inside leasehold', {
    next: 'The log says more. Asking again with the same request id does no harm.',
  })
}

/**
 * A promise that failed with nobody to hear of it is a bug of ours: it is logged, and this process
 * goes on. Everything that counts is decided in transactions, so nothing is left half done, and
 * those who depend on this process would lose more by its end.
 */
export function outliveRejections(): void {
  process.on('unhandledRejection', (error) => void broken(error))
}
