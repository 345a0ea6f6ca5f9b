import { SCHEMA, type AnyRow, type TableName } from '../../core/schema/schema.ts'
import type { Ready } from '../../core/schema/task.ts'
import type { Lease } from '../../core/schema/lock.ts'
import { readyKey, type Terms } from '../../core/rows.ts'
import { machine } from '../../machine/machine.ts'
import type { Head } from '../port.ts'
import type { SideOfCopy } from './side.ts'

/** How store time goes on at the target. */
export interface Course {
  head: Head
  /** What is added to every instant in the rows. */
  shift_ms: number
  /** Set when the machine was booted since the last commit, which was at `last_ms`. */
  booted: { last_ms: number; now: number } | undefined
}

/**
 * Store time of the source has to go on at the target so that no lease ends earlier than it would
 * have. Between stores of one machine it is the same clock. A store that comes from a server gets
 * an offset with which this machine's clock goes on from the server's. A server's clock cannot be
 * set, so there all instants are shifted instead. The source's clock was read first, so that the
 * time between the two looks makes leases longer.
 */
export function courseOf(from: SideOfCopy, to: SideOfCopy): Course {
  const { now } = from
  const { clock_ms: _, ...head } = from.head
  if (to.clock !== undefined) {
    const ahead_ms = Math.ceil(to.head.clock_ms!) - now
    const shift_ms = to.clock === from.clock ? 0 : ahead_ms
    const isOld = from.clock === undefined && head.boot !== '' && head.boot !== machine.boot
    const booted = isOld ? { last_ms: head.last_ms, now } : undefined
    const last_ms = moved(head.last_ms, shift_ms)
    return { head: { ...head, boot: '', offset_ms: 0, last_ms }, shift_ms, booted }
  }
  if (from.clock === undefined) return { head, shift_ms: 0, booted: undefined }
  const offset_ms = Math.floor(now) - Math.ceil(machine.monotonicMs())
  return { head: { ...head, boot: machine.boot, offset_ms }, shift_ms: 0, booted: undefined }
}

/** Zero stands for never. */
const moved = (ms: number, shift_ms: number) => (ms === 0 ? 0 : ms + shift_ms)

/** A row of the source as it is at the target. */
export function onCourse(table: TableName, row: AnyRow, { shift_ms, booted }: Course): AnyRow {
  const given = table === 'lease' && booted ? afterBoot(row as Lease, booted) : row
  if (shift_ms === 0) return given
  const fields = { ...given } as unknown as Record<string, unknown>
  for (const [name, { kind }] of Object.entries(SCHEMA[table].columns)) {
    const value = fields[name]
    if (kind === 'instant' && typeof value === 'number') fields[name] = moved(value, shift_ms)
  }
  if (table === 'ready') fields['key'] = readyKey(fields as unknown as Ready)
  if (table === 'lease') fields['terms'] = shiftedTerms((given as Lease).terms, shift_ms)
  return fields as unknown as AnyRow
}

function shiftedTerms(terms: Terms | null, shift_ms: number): Terms | null {
  if (!terms) return null
  const until_ms = terms.until_ms === null ? null : terms.until_ms + shift_ms
  return { ...terms, since_ms: terms.since_ms + shift_ms, until_ms }
}

/** What the first write after a boot would do, which the source has not seen: one full TTL. */
function afterBoot(lease: Lease, { last_ms, now }: NonNullable<Course['booted']>): Lease {
  if (lease.ended_at !== null || lease.expires_ms <= last_ms) return lease
  const until_ms = lease.terms?.until_ms ?? Number.POSITIVE_INFINITY
  return { ...lease, expires_ms: Math.min(now + lease.ttl_ms, until_ms) }
}
