import { Refusal } from '../core/refusal.ts'
import { readServer } from '../stores/server_file.ts'
import type { Store } from '../stores/store.ts'
import { Role } from './role.ts'

/** One daemon per store. Refuses (`unavailable`) while another serves it. */
export async function takeDaemonRole(store: Store, folder: string): Promise<Role> {
  const role = new Role(store, 'leasehold:daemon', 'daemon')
  try {
    await role.take()
    return role
  } catch (error) {
    throw error instanceof Refusal && error.code === 'held' ? taken(folder, error) : error
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
      next: 'Use that one: the command line finds it by itself. To replace it, stop it first.',
      details: { pid, url: url ?? null },
    },
  )
}
