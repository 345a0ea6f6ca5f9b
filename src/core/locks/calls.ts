import type { Ticket } from '../schema/lock.ts'
import type { Changes, TableName, Tables } from '../schema/schema.ts'
import { headOf, isTurnOf, putTicket } from './line.ts'
import { planted } from '../planted.ts'
import { userLock, userOf } from '../queue/share.ts'
import { isFree } from './standing.ts'
import { NotLoaded, type View } from '../view.ts'

/**
 * Calls every waiter whose turn it has become, and takes back calls that no longer hold. Run once
 * for every transaction, over all the rows that it changed: whatever frees a lock, moves a line or
 * raises a limit calls by doing so, and no rule has to think of it.
 */
export function callHeads(view: View, changes: Changes): void {
  const names = linesIn(changes)
  const looked = new Set<string>()
  // A waiter that turns out to be gone had places in other lines too: those are looked at next.
  const left = ({ names: theirs }: Ticket) => {
    for (const name of theirs) names.add(name)
  }
  for (const name of names) {
    // Most lines change because somebody joins: as long as the lock is held, nobody is called. Only
    // the lock of a user can stop being free in another way than by being taken.
    if (!isFree(view, name) && userOf(name) === undefined) continue
    const head = headOf(view, name, left)
    if (!head || looked.has(head.id)) continue
    looked.add(head.id)
    const isTurn = isTurnOf(view, head)
    if (isTurn && head.called_ms === null) call(view, head, name)
    else if (!isTurn && head.called_ms !== null) putTicket(view, { ...head, called_ms: null })
  }
}

function call(view: View, head: Ticket, lock: string): void {
  if (planted('L3')) return
  putTicket(view, { ...head, called_ms: view.now })
  view.record('ticket.called', { agent: head.agent, lock }, { ticket: head.id })
}

/** The locks whose line may have another head now, or whose head may go ahead. */
function linesIn({ lease, place, share }: Changes): Set<string> {
  const names = new Set(lease?.keys())
  for (const key of place?.keys() ?? []) names.add(lineIn(key))
  for (const user of share?.keys() ?? []) names.add(userLock(user))
  return names
}

/** The lock whose line a place is in: the key of the place begins with it. */
const lineIn = (key: string) => key.slice(0, key.indexOf('\n'))

type Before = <T extends TableName>(table: T, key: string) => Tables[T] | undefined

/**
 * Whether these changes may let something be claimed or started that could not be before: a task
 * became ready, a limit has more room, a promise or a pause has ended, a slot is free. Those who
 * wait for work look again then, and only then.
 */
export function opensWork(changes: Changes, before: Before): boolean {
  try {
    return OPENINGS.some((opens) => opens(changes, before))
  } catch (error) {
    // To look in vain costs little, to wait in vain may last for ever.
    if (error instanceof NotLoaded) return true
    throw error
  }
}

const OPENINGS: ((changes: Changes, before: Before) => boolean)[] = [
  ({ ready }) => some(ready, (row) => row !== null),
  ({ dispatcher }) => some(dispatcher, (row) => row !== null),
  ({ run }) => some(run, (row) => row !== null && row.dispatcher !== null && row.ended_at !== null),
  // A free lock that was promised to a waiter, and is so no longer.
  ({ place }) => some(place, (row, key) => row === null && /^(?:task|user):/.test(key)),
  ({ limit }, before) =>
    some(limit, (row, key) => {
      const was = before('limit', key)
      if (!row || !was) return false
      return row.used < was.used || row.max !== was.max || (was.paused && !row.paused)
    }),
  ({ share }, before) =>
    some(share, (row, key) => {
      const was = before('share', key)
      if (!row || !was) return false
      if (was.turn === null && row.turn !== null) return true
      const isShorter = row.running.length < was.running.length
      return isShorter || row.max !== was.max || (was.paused && !row.paused)
    }),
  ({ queue }, before) =>
    some(queue, (row, key) => {
      const was = before('queue', key)
      return !was || row?.user_max !== was.user_max || (was.paused && !row.paused)
    }),
]

function some<Row>(
  rows: Map<string, Row | null> | undefined,
  fits: (row: Row | null, key: string) => boolean,
): boolean {
  for (const [key, row] of rows ?? []) if (fits(row, key)) return true
  return false
}
