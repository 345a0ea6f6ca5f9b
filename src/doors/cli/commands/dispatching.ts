import type { Run } from '../../../core/schema/task.ts'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import pc from 'picocolors'
import { oneLine } from '../../../core/quote.ts'
import { isRefusal, Refusal } from '../../../core/refusal.ts'
import type { Event } from '../../../core/event.ts'
import type { AgentDoor } from '../../../daemon/dispatch/agent_door.ts'
import { dispatcherOn } from '../../../daemon/dispatch/launch.ts'
import type { Dispatcher } from '../../../daemon/dispatch/dispatcher.ts'
import { startSweeper } from '../../../daemon/sweeper.ts'
import { folderOf } from '../../../stores/open.ts'
import { serverIn } from '../../../reach/server_file.ts'
import type { Store } from '../../../stores/writer/store.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'
import { span } from '../show/table.ts'
import { OUTPUT, runFolder } from '../../../machine/run_output.ts'
import { io } from '../../io.ts'

const FOLLOW_MS = 100
const DRAW_MS = 1_000

/** A dispatcher in this terminal: says what it starts and how that ends, until it is stopped. */
export async function dispatchHere(context: Context, slots: string | undefined): Promise<void> {
  const store = context.store()
  const folder = folderOf(context.place)
  const env = { ...context.env, ...(slots !== undefined && { LEASEHOLD_SLOTS_MAX: slots }) }
  const { Dispatcher, openAgentDoor, outliveRejections } = await import('../../../daemon/main.ts')
  outliveRejections()
  await store.write(() => undefined)
  await store.follow(FOLLOW_MS)
  const screen = new Screen(context.json, store, folder)
  const address = { url: '' }
  const dispatcher = new Dispatcher(store, {
    place: context.place,
    env,
    // Where a daemon serves too, its door stays open when we are gone.
    url: () => serverIn(folder)?.url ?? address.url,
    say: (text) => screen.say(text),
  })
  const door = await openAgentDoor(store, folder)
  address.url = door.url
  const why = await dispatchUntilStopped(store, dispatcher, door, screen).finally(() =>
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
  screen: Screen,
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
  screen.begin()
  const why = await stopped
  screen.end()
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

/** Lines of what happened; below them, in a terminal, one line per running task. */
class Screen {
  private readonly live = io().stdout.isTTY
  private drawn = 0
  private timer: NodeJS.Timeout | undefined
  private forget = () => {}

  constructor(
    private readonly json: boolean,
    private readonly store: Store,
    private readonly folder: string,
  ) {}

  begin(): void {
    this.say('dispatching; Ctrl-C stops it, and running agents go on')
    this.forget = this.store.onCommit((events) => {
      for (const event of events) this.tell(event)
    })
    if (this.live && !this.json) this.timer = setInterval(() => void this.draw(), DRAW_MS)
  }

  end(): void {
    clearInterval(this.timer)
    this.forget()
    this.clear()
  }

  say(text: string): void {
    this.clear()
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

  private clear(): void {
    if (this.drawn > 0) io().stdout.write(`\u001b[${this.drawn}A\u001b[J`)
    this.drawn = 0
  }

  private async draw(): Promise<void> {
    const { runs, now } = await this.store.read((view) => ({
      runs: [...view.scan('runs_dispatched_by', dispatcherOn(this.store.host()))],
      now: view.wall,
    }))
    this.clear()
    const lines = runs.map((run) => this.lineOf(run, now))
    if (lines.length > 0) print(lines.join('\n'))
    this.drawn = lines.length
  }

  private lineOf(run: Run, now: number): string {
    const seconds = Math.max(0, Math.round((now - Date.parse(run.started_at)) / 1000))
    const text = `  ${run.id}  ${span(seconds)}  ${lastLine(runFolder(this.folder, run.id))}`
    return pc.cyan(text.slice(0, (io().stdout.columns ?? 80) - 1))
  }
}

/** The last line that a run printed, as plain text: nothing of it may move the cursor. */
function lastLine(folder: string): string {
  try {
    const file = openSync(join(folder, OUTPUT), 'r')
    try {
      const buffer = Buffer.alloc(2048)
      const { size } = fstatSync(file)
      const read = readSync(file, buffer, 0, buffer.length, Math.max(0, size - buffer.length))
      const text = stripVTControlCharacters(buffer.toString('utf8', 0, read))
      return oneLine(text.trimEnd().split('\n').at(-1)!)
    } finally {
      closeSync(file)
    }
  } catch {
    return ''
  }
}
