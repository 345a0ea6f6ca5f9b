import { Refusal } from '../../core/refusal.ts'
import type { Connection } from './driver.ts'

/**
 * A pooler in transaction mode gives every transaction whichever session of the server is free.
 * What ours have set (timeouts, plans), prepared and listen to would then be somebody else's, now
 * and then, without any error. So a session of ours carries a mark, its number in the server, in a
 * setting that lives as long as the session. A session that was just opened has no mark, and one in
 * which we begin a transaction has ours. Anything else is a session that others use too.
 */
export const markSession = `WITH was AS MATERIALIZED (
    SELECT current_setting('leasehold.session', true) AS mark)
  SELECT pg_backend_pid()::text, was.mark,
  set_config('leasehold.session', pg_backend_pid()::text, false) FROM was`

/** For a statement in every transaction: what `refuseAnothers` has to be told. */
export const readMark = `coalesce(current_setting('leasehold.session', true), '')`

/** Closes and refuses (`unavailable`) a session that was marked when we got it. */
export async function refuseUsed(db: Connection): Promise<Connection> {
  if (db.mark === '') return db
  await db.close()
  throw pooled('it was handed a session that another client has used')
}

/**
 * Refuses where another client would be given the session of `db`, which does nothing now: poolers
 * hand out first what was used last. Anything else that happens to the other is no proof.
 */
export async function refuseShared(
  db: Connection,
  another: () => Promise<Connection>,
): Promise<void> {
  try {
    await (await another()).close()
  } catch (error) {
    if (!(error instanceof Refusal)) return
    await db.close()
    throw error
  }
}

/** Refuses (`unavailable`) a transaction that runs in another session than `pid`. */
export function refuseAnothers(mark: string | null | undefined, pid: string): void {
  if (mark !== pid) throw pooled('a transaction was run in the session of another client')
}

export function pooled(what: string): Refusal {
  return new Refusal('unavailable', `A pooler is in the way to the database: ${what}`, {
    next:
      'Let it pool sessions (PgBouncer: pool_mode = session, and DISCARD ALL between clients), ' +
      'or name the server itself in LEASEHOLD_STORE.',
  })
}
