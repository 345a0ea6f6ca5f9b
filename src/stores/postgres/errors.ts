import { Refusal } from '../../core/refusal.ts'
import { diskFull, systemCode, unanswered } from '../../machine/errors.ts'
import { pooled } from './pooled.ts'

/** What PostgreSQL calls an error: five characters. EPIPE is one of the system's. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : undefined
}

export const STATE = {
  lockTimeout: '55P03',
  aborted: '25P02',
  divisionByZero: '22012',
  noTable: '42P01',
  noSchema: '3F000',
} as const

/** The server went away, is not up yet, or ended our session; the next try may find it again. */
const AWAY = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '53300', '25006'])

/**
 * Somebody was in the way, or it took too long: nothing was written, and it may go better. A key
 * that is taken (23505) is an event's position or a version's commit: then our lock was not held.
 */
const UNLUCKY = new Set(['40001', '40P01', '57014', '23505', STATE.lockTimeout])

/**
 * A statement that we have prepared is not there, or another is in its place; and what PgBouncer
 * says to BEGIN in statement mode.
 */
function isPooled(error: unknown): boolean {
  const state = sqlState(error)
  return state === '26000' || state === '42P05' || / pooling mode/.test((error as Error)?.message)
}

/** Whether a new connection may find what this error says is not there. */
export function isAway(error: unknown): boolean {
  if (error instanceof Refusal || isPooled(error)) return false
  const state = sqlState(error)
  if (state) return AWAY.has(state) || state.startsWith('08')
  if (systemCode(error) ?? networkCode(error)) return true
  // The driver has no code for a connection that ended.
  return error instanceof Error && /connection|timeout|ended|queryable/i.test(error.message)
}

/**
 * The server had closed the connection before all of it was sent. COMMIT is what is sent last: it
 * has not arrived.
 */
export function isUnsent(error: unknown): boolean {
  return systemCode(error) === 'EPIPE' || networkCode(error) === 'EPIPE'
}

/** A name with several addresses fails with all of their errors, and only the code of one. */
function networkCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^E[A-Z]+$/.test(code) ? code : undefined
}

/** Whether the same transaction may succeed if it is begun again. */
export function mayGoBetter(error: unknown): boolean {
  const state = sqlState(error)
  return isAway(error) || (state !== undefined && UNLUCKY.has(state))
}

/** Whether there are no tables of ours. */
export function isMissing(error: unknown): boolean {
  const state = sqlState(error)
  return state === STATE.noTable || state === STATE.noSchema
}

/** Somebody answers there, and will not have us: no password, no certificate, no such database. */
export function shut(shown: string, said: string): Refusal {
  return new Refusal('unavailable', `The store ${shown} does not let us in: ${said}`, {
    next: 'Check user, password, certificate and database; the user must own the schema.',
  })
}

const AWAY_NEXT = 'Check that this server runs and can be reached, then ask again.'

/** What PostgreSQL said, as a typed refusal that says what to do. Bugs stay what they are. */
export function refusalFor(error: unknown, shown: string): Error {
  if (error instanceof Refusal) return error
  const said = (error instanceof Error ? error.message : String(error)) || networkCode(error)!
  const state = sqlState(error) ?? ''
  if (isPooled(error)) return pooled(said)
  if (state === '53100') return diskFull(shown)
  if (mayGoBetter(error) || state.startsWith('53')) return unanswered(shown, said, AWAY_NEXT)
  if (state.startsWith('28') || state === '3D000' || state === '42501') return shut(shown, said)
  if (state === '22021' || state === '22P05') {
    return new Refusal('invalid', 'PostgreSQL cannot keep the character NUL in a text', {
      next: 'Leave it out.',
    })
  }
  if (state === 'XX001' || state === 'XX002') {
    return new Refusal('damaged', `The store ${shown} is damaged: ${said}`, {
      next: 'Restore a backup of the database, then: leasehold db restore --raise-epoch',
    })
  }
  return error instanceof Error ? error : new Error(said)
}
