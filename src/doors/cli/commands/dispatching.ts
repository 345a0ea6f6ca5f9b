import pc from 'picocolors'
import { isRefusal, Refusal } from '../../../core/refusal.ts'
import type { Event } from '../../../core/event.ts'
import type { AgentDoor } from '../../../daemon/door.ts'
import type { Dispatcher } from '../../../daemon/dispatch/dispatcher.ts'
import { startSweeper } from '../../../daemon/sweeper.ts'
import { folderOf } from '../../../stores/open.ts'
import { serverIn } from '../../../reach/server_file.ts'
import type { Store } from '../../../stores/writer/store.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'

const FOLLOW_MS = 100

/** A dispatcher in this terminal: says what it starts and how that ends, until it is stopped. */
export async function dispatchHere(context: Context, slots: string | undefined): Promise<void> {
  const store = context.store()
  const folder = folderOf(context.place)
  const env = { ...context.env, ...(slots !== undefined && { LEASEHOLD_SLOTS_MAX: slots }) }
  const { Dispatcher, openAgentDoor, outliveRejections } = await import('../../../daemon/main.ts')
  outliveRejections()
  await store.write(() => undefined)
  await store.follow(FOLLOW_MS)
  const teller = new Teller(context.json, store)
  const address = { url: '' }
  const dispatcher = new Dispatcher(store, {
    place: context.place,
    env,
    // Where a daemon serves too, its door stays open when we are gone.
    url: () => serverIn(folder)?.url ?? address.url,
    say: (text) => teller.say(text),
  })
  const door = await openAgentDoor(store, folder)
  address.url = door.url
  const why = await dispatchUntilStopped(store, dispatcher, door, teller).finally(() =>
    door.close(),
  )
  if (why === undefined) return
  throw new Refusal('unavailable', `The dispatcher had to stop: ${why}`, {
    next: 'Start it again when the store is in order: leasehold doctor',
  })
}

/** Returns why it had to stop; nothing when a person stopped it. */
async function dispatchUntilStopped(
  store: Store,
  dispatcher: Dispatcher,
  door: AgentDoor,
  teller: Teller,
): Promise<string | undefined> {
  // From the beginning: it may be told to end before all of it is there.
  const stopped = new Promise<string | undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => resolve(undefined))
    }
    store.onCommit(() => undefined, undefined, resolve)
  })
  await dispatcher.start().catch((error) => {
    throw isRefusal(error, 'held') ? taken(error) : error
  })
  door.remember()
  const unsweep = startSweeper(store)
  teller.begin()
  const why = await stopped
  teller.end()
  unsweep()
  await dispatcher.stop()
  return why
}

function taken(refusal: Refusal): Refusal {
  const { pid } = refusal.details
  const what = `A dispatcher is already running on this host (PID: ${String(pid)})`
  return new Refusal('unavailable', what, {
    next: 'A daemon dispatches by itself: see leasehold queue status.',
    details: { pid },
  })
}

/** Tells what happens; what runs at the moment, `leasehold status --watch` shows. */
class Teller {
  private forget = () => {}

  constructor(
    private readonly json: boolean,
    private readonly store: Store,
  ) {}

  begin(): void {
    this.say('dispatching; Ctrl-C stops it, and running agents go on')
    this.forget = this.store.onCommit((events) => {
      for (const event of events) this.tell(event)
    })
  }

  end(): void {
    this.forget()
  }

  say(text: string): void {
    if (this.json) print(JSON.stringify({ said: text }))
    else print(`${pc.dim(new Date().toTimeString().slice(0, 8))} ${text}`)
  }

  private tell({ type, data, task }: Event): void {
    if (type === 'run.started') this.say(`${pc.yellow('started')} run ${data['run']}`)
    if (type === 'run.ended') {
      const { reason, exit_code, signal } = data as Record<string, string | number | null>
      const why = reason ?? (signal === null ? `exit ${exit_code}` : `killed by ${signal}`)
      const well = data['status'] === 'completed'
      const word = (well ? pc.green : pc.red)(data['status'])
      this.say(`${word} run ${data['run']}: ${why}`)
    }
    if (type === 'task.quarantined') this.say(`${pc.red('put aside')} task ${task}: lost too often`)
  }
}
