import { setFlagsFromString } from 'node:v8'
import { randomBytes } from 'node:crypto'
import { grantTimeAfterAbsence } from '../core/locks/restore.ts'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { sha256 } from '../machine/digest.ts'
import { fileRefusal } from '../machine/errors.ts'
import { checkStore, damageOf } from '../stores/care.ts'
import { folderOf, openStore, type Place } from '../stores/open.ts'
import type { Store } from '../stores/writer/store.ts'
import type { Event } from '../core/event.ts'
import { host, isStopped, ownProcess } from '../machine/process.ts'
import { announce, readServer, withdraw } from '../reach/server_file.ts'
import { startAlerts } from './alerts/alerts.ts'
import { readConfig } from './config/config.ts'
import { Leading } from './leading.ts'
import { startPruner } from './pruner.ts'
import { Dispatcher } from './dispatch/dispatcher.ts'
import { BOUNDS, type Door, type DoorAsk, openDoor } from './door.ts'
// reason: the room for background jobs
import { NoteKeeper } from './embedding/keeper.ts'
import { Landers } from './lander/landers.ts'
import { Role } from './role.ts'
import { startSweeper } from './sweeper.ts'

/** How often writes by other processes are looked for: somebody may wait for what they free. */
const FOLLOW_MS = 100

export interface Served {
  url: string
  /** Finishes what was accepted, then lets go of everything. */
  stop(): Promise<void>
  /** Resolves with the reason when the daemon has to end by itself. */
  ended: Promise<string>
}

/** Long texts come and go: left alone, V8 keeps twice as many that nobody needs any more. */
const HEAP_GROWTH = '--heap-growing-percent=25'

/** The only place that wires all: store, doors, and what runs by itself. */
export async function serve(
  place: Place,
  port: DoorAsk['port'],
  version: string,
  bounds = BOUNDS,
): Promise<Served> {
  setFlagsFromString(HEAP_GROWTH)
  await checkMarked(place)
  const store = openStore(place)
  // What expired while nobody served is noticed by the very first write.
  const noticed: Event[] = []
  const forget = store.onCommit((events) => void noticed.push(...events))
  const role = await takeDaemonRole(store, place).catch(async (error: Error) => {
    await store.close()
    throw error
  })
  const ended = new Promise<string>((end) => {
    role.keep(end)
    store.onCommit(() => undefined, undefined, end)
  })
  // What was begun, ended in the reverse order: when all is over, and when a step of this fails.
  const ends: (() => Promise<void>)[] = [() => store.close(), () => role.release()]
  const stop = async () => {
    // One that fails does not keep the others from ending: an open door would keep the process.
    for (const end of ends.splice(0).toReversed()) {
      await end().catch((error: Error) => say(`stopping: ${error.message}`))
    }
  }
  try {
    let url = ''
    const known = { place, env: process.env, say, url: () => url }
    // Made first: a configuration that is refused opens no door.
    const dispatcher = store.isDatabase ? new Dispatcher(store, known) : undefined
    const door = await openOurs(store, place, port, version, bounds)
    const leading = store.leaders && leadingOf(store, place, version)
    ends.push(async () => leading?.follower.close())
    ends.push(() => door.close())
    if (leading) ends.push(() => leading.stop())
    await leading?.start()
    url = door.url
    if (dispatcher) ends.push(() => dispatcher.stop())
    await dispatcher?.startOrStandBy()
    const parts = dispatcher ? [new Landers(store, known), new NoteKeeper(store, known)] : []
    for (const part of parts) {
      ends.push(() => part.stop())
      await part.start()
    }
    forget()
    ends.push(await startAlerts(store, place, role, noticed))
    // Not before all of it is there: a start that fails changes nothing.
    await giveTime(store, role.name)
    return { url, stop, ended }
  } catch (error) {
    await stop()
    throw fileRefusal(error, folderOf(place))
  }
}

/** A store in trouble (a full disk, say) keeps nobody from being served. */
function giveTime(store: Store, daemon: string): Promise<void> {
  const returned = { daemon, host, isShared: store.isShared }
  return store
    .write((view) => grantTimeAfterAbsence(view, returned))
    .catch((error: Error) => {
      if (!isRefusal(error, 'unavailable')) throw error
      say(`leases get no time for our absence: ${error.message}`)
    })
}

/**
 * A disk that was away for a moment looks damaged to whoever reads it then. What a check does not
 * find is no damage: the check takes the mark away.
 */
async function checkMarked(place: Place): Promise<void> {
  if (place.kind !== 'sqlite' || (await damageOf(place)) === undefined) return
  const { ok } = await checkStore(place)
  if (ok) say('the store was marked as damaged; a check found nothing wrong, so it is used again')
}

/** Other machines reach it only where the configuration says so. */
function leadingOf(store: Store, place: Place, version: string): Leading {
  const listen = () => {
    try {
      return readConfig(folderOf(place), process.env).peers.listen ?? LOOPBACK
    } catch (error) {
      // The dispatcher says so too, and goes on when it is mended.
      say((error as Error).message)
      return LOOPBACK
    }
  }
  return new Leading(store, { listen, version, say })
}

const LOOPBACK = { host: '127.0.0.1', port: 0 }

const say = (sentence: string) => void process.stderr.write(`leasehold: ${sentence}\n`)

/** Opens the doors of a store that is ours, and says where they are. */
async function openOurs(
  store: Store,
  place: Place,
  port: DoorAsk['port'],
  version: string,
  bounds: typeof BOUNDS,
): Promise<Door> {
  const folder = folderOf(place)
  const secret = randomBytes(32).toString('base64url')
  const door = await openDoor(store, { port, version, secret, bounds })
  const stops: (() => void | Promise<void>)[] = []
  const close = async () => {
    withdraw(folder, process.pid)
    for (const stop of stops) await stop()
    await door.close()
  }
  try {
    await store.follow(FOLLOW_MS)
    stops.push(startSweeper(store), startPruner(store, place))
    const { pid, start, seat } = ownProcess()
    announce(folder, { pid, start, seat, url: door.url, version }, secret)
    return { url: door.url, close }
  } catch (error) {
    // An open port would keep this process from ending, though nobody is served.
    await close()
    throw error
  }
}

/**
 * One daemon per store, and one per state folder of a store that many hosts share. Refuses
 * (`unavailable`) while another serves it.
 */
async function takeDaemonRole(store: Store, place: Place): Promise<Role> {
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
