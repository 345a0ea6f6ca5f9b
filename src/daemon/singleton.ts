import { isRefusal, Refusal } from '../core/refusal.ts'
import { sha256 } from '../machine/digest.ts'
import { folderOf, type Place } from '../stores/open.ts'
import { isStopped } from '../machine/process.ts'
import { readServer } from '../reach/server_file.ts'
import type { Store } from '../stores/writer/store.ts'
import { Role } from './role.ts'

/**
 * One daemon per store, and one per state folder of a store that many hosts share. Refuses
 * (`unavailable`) while another serves it.
 */
export async function takeDaemonRole(store: Store, place: Place): Promise<Role> {
  const folder = folderOf(place)
  const here = place.kind === 'postgres' ? `:${store.host()}:${sha256(folder).slice(0, 8)}` : ''
  const role = new Role(store, `leasehold:daemon${here}`, 'daemon')
  try {
    await role.take()
    return role
  } catch (error) {
    throw isRefusal(error, 'held') ? taken(folder, error) : error
  }
}

function taken(folder: string, refusal: Refusal): Refusal {
  const { pid } = refusal.details
  const server = readServer(folder)
  // What a daemon that was killed left behind names another process.
  const url = server?.pid === pid ? server?.url : undefined
  const where = url === undefined ? '' : ` at ${url}`
  return new Refusal(
    'unavailable',
    `Another leasehold server is already running on this database (PID: ${String(pid)}${where})`,
    {
      next: isStopped(Number(pid))
        ? `It is stopped. Let it go on: kill -CONT ${String(pid)}`
        : 'Use that one: the command line finds it by itself. To replace it, stop it first.',
      details: { pid, url: url ?? null },
    },
  )
}
