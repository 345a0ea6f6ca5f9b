import { Refusal } from '../core/refusal.ts'

/** A bug of ours, as doors tell of it: what went wrong is for the log, not for whoever asks. */
export function broken(error: unknown): Refusal {
  process.stderr.write(`leasehold: ${error instanceof Error ? error.stack : String(error)}\n`)
  return new Refusal('internal', 'Something broke inside leasehold', {
    next: 'The log says more. Asking again with the same request id does no harm.',
  })
}
